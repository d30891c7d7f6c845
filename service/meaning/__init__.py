"""Search by meaning: encoders turn texts into vectors, which order results and prove nothing."""
