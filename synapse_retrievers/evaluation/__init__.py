"""Does learning from use help? History -> runs -> before and after, with intervals."""
