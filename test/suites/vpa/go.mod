module skiff.dev/suites/vpa

go 1.26.0

tool (
	k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender
	k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater
)

require (
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/autoscaler/vertical-pod-autoscaler v1.7.1
	k8s.io/client-go v0.36.3
)
