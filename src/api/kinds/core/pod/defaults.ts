/**
 * Defaults of pods and pod templates (L1). Idempotent: fills only what is absent.
 * Upstream: pkg/apis/core/v1/defaults.go (v1.36).
 */
import type { Container, ContainerPort, HTTPGetAction, Pod, PodSpec, PodTemplateSpec, Probe, Volume } from '#api/gen/types/core.v1'
import { amountText, isPodLevelResource, podRequests } from '#api/helpers/podResources'
import { isQuantity } from '#api/machinery/quantity'
import { bareMap } from '#base/bareMap'

/** The part of a container that init, app and ephemeral containers share. */
type AnyContainer = Omit<Container, 'name'>

/** What every pod spec gets, in a Pod and in a template. */
function setPodSpecDefaults(spec: PodSpec): void {
  spec.dnsPolicy ||= 'ClusterFirst'
  spec.restartPolicy ||= 'Always'
  spec.securityContext ??= {}
  spec.terminationGracePeriodSeconds ??= 30
  spec.schedulerName ||= 'default-scheduler'
  // The deprecated twin follows, both ways, as upstream's conversion does.
  if (spec.serviceAccountName) spec.serviceAccount = spec.serviceAccountName
  else if (spec.serviceAccount) spec.serviceAccountName = spec.serviceAccount
  for (const containers of [spec.containers, spec.initContainers, spec.ephemeralContainers])
    for (const container of containers ?? []) setContainerDefaults(container)
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume)
}

/** What only a real Pod gets: requests follow limits, host ports follow the host's network. */
export function setPodDefaults(pod: Pod): void {
  // Admission reads a pod before validation has refused one without containers.
  pod.spec ??= { containers: [] }
  pod.spec.containers ??= []
  pod.status ??= {}
  setPodSpecDefaults(pod.spec)
  const containers = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]
  for (const { resources } of containers) {
    if (resources?.limits) resources.requests = { ...resources.limits, ...resources.requests }
  }
  setPodLevelRequests(pod)
  pod.spec.enableServiceLinks ??= true
  if (pod.spec.hostNetwork) for (const { ports } of containers) for (const port of ports ?? []) port.hostPort ||= port.containerPort
}

/** A pod with limits as a whole also requests as a whole: what its containers do, or else its limits. */
function setPodLevelRequests(pod: Pod): void {
  const { resources } = pod.spec
  if (!resources || Object.keys(resources.limits ?? {}).length === 0) return
  const containers = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]
  // A wrong quantity is for validation to refuse.
  if (!containers.flatMap((container) => Object.values(container.resources?.requests ?? {})).every(isQuantity)) return
  const requests = bareMap({ ...resources.requests })
  for (const [name, sum] of Object.entries(podRequests(pod, { skipPodLevelResources: true, excludeOverhead: true })))
    if (isPodLevelResource(name) && !name.startsWith('hugepages-')) requests[name] ??= amountText(name, sum)
  for (const [name, limit] of Object.entries(resources.limits ?? {})) if (isPodLevelResource(name)) requests[name] ??= limit
  if (Object.keys(requests).length > 0) resources.requests = requests
}

/** A template's metadata and spec. */
export function setPodTemplateDefaults(template: PodTemplateSpec | undefined): void {
  if (!template) return
  template.spec ??= { containers: [] }
  setPodSpecDefaults(template.spec)
}

/** `latest` when the reference names neither tag nor digest. */
export function imageTag(reference: string): string {
  const name = reference.slice(reference.lastIndexOf('/') + 1)
  if (name.includes('@')) return ''
  const colon = name.indexOf(':')
  return colon < 0 ? 'latest' : name.slice(colon + 1)
}

function setContainerDefaults(container: AnyContainer): void {
  container.imagePullPolicy ||= imageTag(container.image ?? '') === 'latest' ? 'Always' : 'IfNotPresent'
  container.terminationMessagePath ||= '/dev/termination-log'
  container.terminationMessagePolicy ||= 'File'
  for (const port of container.ports ?? []) setPortDefaults(port)
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) if (probe) setProbeDefaults(probe)
  setHttpDefaults(container.lifecycle?.postStart?.httpGet)
  setHttpDefaults(container.lifecycle?.preStop?.httpGet)
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ||= 'v1'
    if (valueFrom?.fileKeyRef) valueFrom.fileKeyRef.optional ??= false
  }
}

function setPortDefaults(port: ContainerPort): void {
  port.protocol ||= 'TCP'
}

function setProbeDefaults(probe: Probe): void {
  probe.timeoutSeconds ||= 1
  probe.periodSeconds ||= 10
  probe.successThreshold ||= 1
  probe.failureThreshold ||= 3
  setHttpDefaults(probe.httpGet)
  if (probe.grpc) probe.grpc.service ??= ''
}

function setHttpDefaults(action: HTTPGetAction | undefined): void {
  if (!action) return
  action.path ||= '/'
  action.scheme ||= 'HTTP'
}

function setVolumeDefaults(volume: Volume): void {
  if (Object.keys(volume).every((key) => key === 'name')) volume.emptyDir = {}
  if (volume.secret) volume.secret.defaultMode ??= 420
  if (volume.configMap) volume.configMap.defaultMode ??= 420
  if (volume.hostPath) volume.hostPath.type ??= ''
  if (volume.downwardAPI) {
    volume.downwardAPI.defaultMode ??= 420
    setDownwardDefaults(volume.downwardAPI.items)
  }
  if (volume.projected) {
    volume.projected.defaultMode ??= 420
    for (const source of volume.projected.sources ?? []) {
      if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600
      setDownwardDefaults(source.downwardAPI?.items)
    }
  }
  if (volume.image) volume.image.pullPolicy ||= imageTag(volume.image.reference ?? '') === 'latest' ? 'Always' : 'IfNotPresent'
  const template = volume.ephemeral?.volumeClaimTemplate
  if (template) template.spec = { ...template.spec, volumeMode: template.spec?.volumeMode ?? 'Filesystem' }
  if (volume.iscsi) volume.iscsi.iscsiInterface ||= 'default'
  if (volume.rbd) {
    volume.rbd.pool ||= 'rbd'
    volume.rbd.user ||= 'admin'
    volume.rbd.keyring ||= '/etc/ceph/keyring'
  }
  if (volume.azureDisk) {
    volume.azureDisk.cachingMode ??= 'ReadWrite'
    volume.azureDisk.kind ??= 'Shared'
    volume.azureDisk.fsType ??= 'ext4'
    volume.azureDisk.readOnly ??= false
  }
}

function setDownwardDefaults(items: { fieldRef?: { apiVersion?: string | undefined } | undefined }[] | undefined): void {
  for (const { fieldRef } of items ?? []) if (fieldRef) fieldRef.apiVersion ||= 'v1'
}
