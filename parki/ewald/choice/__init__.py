"""Choice of parameters and kernel variants for a question, by models and by measurement."""
