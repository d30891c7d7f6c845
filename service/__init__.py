"""The service: operations, the sources that answer them, and the surfaces that call them."""
