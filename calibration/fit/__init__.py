"""Fits of profiles: few physical parameters with priors, and smooth corrections."""
