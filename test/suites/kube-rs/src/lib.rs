//! kube-rs, unmodified, against a Skiff cluster named by KUBECONFIG; `tests/cluster.rs` has the tests.
