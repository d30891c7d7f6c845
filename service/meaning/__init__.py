"""Search by meaning: encoders turn texts into vectors, which affect ranking but prove nothing."""
