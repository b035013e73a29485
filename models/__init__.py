"""What is known: architectures, clusters, layouts, and the physics of a step."""
