"""The read path, pure: hits -> seed -> spread | cue -> fuse -> displace -> as many hits."""
