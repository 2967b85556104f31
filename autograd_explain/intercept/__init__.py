"""An error, a warning or a finding of the recorder becomes an Incident, and is answered."""
