// Package controllerruntime runs controller-runtime, unmodified, against a Skiff cluster named by KUBECONFIG. Nothing here knows that it is not
// upstream's server.
package controllerruntime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "suite.skiff.dev", Version: "v1"}

// Site is a custom resource: a Deployment of so many replicas.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec,omitempty"`
	Status            SiteStatus `json:"status,omitempty"`
}

type SiteSpec struct {
	Replicas int32  `json:"replicas,omitempty"`
	Image    string `json:"image,omitempty"`
}

type SiteStatus struct {
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

func (s *Site) DeepCopyObject() runtime.Object {
	copied := *s
	copied.ObjectMeta = *s.ObjectMeta.DeepCopy()
	return &copied
}

func (l *SiteList) DeepCopyObject() runtime.Object {
	copied := SiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		copied.Items = append(copied.Items, *item.DeepCopyObject().(*Site))
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
