"""What a program is linked to, and which linear algebra libraries there are."""
