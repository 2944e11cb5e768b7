//! Requests to a Kubernetes API server, with the clients that make them.
