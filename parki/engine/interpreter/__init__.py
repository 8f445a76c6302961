"""The reference interpreter of typed trees."""
