/** The devices, CPUs and memory that pods of a node use (L1): podresources v1. Upstream: k8s.io/kubelet/pkg/apis/podresources/v1 (v1.36). */
export const podResourcesProto = `
package v1;
service PodResourcesLister {
  rpc List(ListPodResourcesRequest) returns (ListPodResourcesResponse);
  rpc GetAllocatableResources(AllocatableResourcesRequest) returns (AllocatableResourcesResponse);
  rpc Get(GetPodResourcesRequest) returns (GetPodResourcesResponse);
}
message AllocatableResourcesRequest {}
message AllocatableResourcesResponse { repeated ContainerDevices devices = 1; repeated int64 cpu_ids = 2; repeated ContainerMemory memory = 3; }
message ListPodResourcesRequest {}
message ListPodResourcesResponse { repeated PodResources pod_resources = 1; }
message PodResources { string name = 1; string namespace = 2; repeated ContainerResources containers = 3; }
message ContainerResources { string name = 1; repeated ContainerDevices devices = 2; repeated int64 cpu_ids = 3; repeated ContainerMemory memory = 4; repeated DynamicResource dynamic_resources = 5; }
message ContainerMemory { string memory_type = 1; uint64 size = 2; TopologyInfo topology = 3; }
message ContainerDevices { string resource_name = 1; repeated string device_ids = 2; TopologyInfo topology = 3; }
message TopologyInfo { repeated NUMANode nodes = 1; }
message NUMANode { int64 ID = 1; }
message DynamicResource { string claim_name = 2; string claim_namespace = 3; repeated ClaimResource claim_resources = 4; }
message ClaimResource { repeated CDIDevice cdi_devices = 1; string driver_name = 2; string pool_name = 3; string device_name = 4; string share_id = 5; }
message CDIDevice { string name = 1; }
message GetPodResourcesRequest { string pod_name = 1; string pod_namespace = 2; }
message GetPodResourcesResponse { PodResources pod_resources = 1; }
`
