"""From the rows of a table to standardised inputs and targets."""
