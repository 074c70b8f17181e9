//! Contract laws, scripted tools and an allocation counter for testing layers.
