"""Reference interpreter of typed trees."""
