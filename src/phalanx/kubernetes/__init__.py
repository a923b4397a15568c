"""Kubernetes' own filters and scores, as functions on the session's arrays. Plugins share them; they know no plugin."""
