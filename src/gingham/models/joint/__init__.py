"""Several tables that share modes (P0 eqs. 46-48): JointCoClustering."""
