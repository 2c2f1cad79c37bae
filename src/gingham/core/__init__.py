"""What is divided, and how: structures, posteriors, problems and solutions as frozen values."""
