/**
 * What a DRA driver offers on its node (L1): dra v1 and v1beta1, which differ in share_id only, and the stream of device health, v1alpha1.
 * Upstream: k8s.io/kubelet/pkg/apis/dra, dra-health (v1.36).
 */
const plugin = (version: string) => `
package k8s.io.kubelet.pkg.apis.dra.${version};
service DRAPlugin {
  rpc NodePrepareResources(NodePrepareResourcesRequest) returns (NodePrepareResourcesResponse);
  rpc NodeUnprepareResources(NodeUnprepareResourcesRequest) returns (NodeUnprepareResourcesResponse);
}
message NodePrepareResourcesRequest { repeated Claim claims = 1; }
message NodePrepareResourcesResponse { map<string, NodePrepareResourceResponse> claims = 1; }
message NodePrepareResourceResponse { repeated Device devices = 1; string error = 2; }
message Device { repeated string request_names = 1; string pool_name = 2; string device_name = 3; repeated string cdi_device_ids = 4; string share_id = 5; }
message NodeUnprepareResourcesRequest { repeated Claim claims = 1; }
message NodeUnprepareResourcesResponse { map<string, NodeUnprepareResourceResponse> claims = 1; }
message NodeUnprepareResourceResponse { string error = 1; }
message Claim { string namespace = 1; string uid = 2; string name = 3; }
`

/** Version → its description. */
export const draProtos = { v1: plugin('v1'), v1beta1: plugin('v1beta1') } as const

export const draHealthProto = `
package v1alpha1;
service DRAResourceHealth { rpc NodeWatchResources(NodeWatchResourcesRequest) returns (stream NodeWatchResourcesResponse); }
message NodeWatchResourcesRequest {}
enum HealthStatus { UNKNOWN = 0; HEALTHY = 1; UNHEALTHY = 2; }
message DeviceIdentifier { string pool_name = 1; string device_name = 2; }
message DeviceHealth { DeviceIdentifier device = 1; HealthStatus health = 2; int64 last_updated_time = 3; int64 health_check_timeout_seconds = 4; string message = 5; }
message NodeWatchResourcesResponse { repeated DeviceHealth devices = 1; }
`
