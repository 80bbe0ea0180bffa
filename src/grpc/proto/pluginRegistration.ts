/** How plugins in plugins_registry introduce themselves (L1): pluginregistration v1. Upstream: k8s.io/kubelet/pkg/apis/pluginregistration/v1 (v1.36). */
export const pluginRegistrationProto = `
package pluginregistration;
service Registration {
  rpc GetInfo(InfoRequest) returns (PluginInfo);
  rpc NotifyRegistrationStatus(RegistrationStatus) returns (RegistrationStatusResponse);
}
message PluginInfo { string type = 1; string name = 2; string endpoint = 3; repeated string supported_versions = 4; }
message RegistrationStatus { bool plugin_registered = 1; string error = 2; }
message RegistrationStatusResponse {}
message InfoRequest {}
`
