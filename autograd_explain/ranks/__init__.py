"""Many processes of one job: what each of them left behind, as one account."""
