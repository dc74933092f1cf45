"""Which of two machines is faster, from which size on, and where nobody knows."""
