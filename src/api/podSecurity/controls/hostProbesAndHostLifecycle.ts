/** Baseline: probes and lifecycle hooks go to the pod itself (L1, pure). Upstream: policy/check_hostProbesAndhostLifecycle.go. */
import type { LifecycleHandler, Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type AnyContainer, type CheckPod, type Control, containersOf, distinct, named } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const bad = containersOf(spec)
    .map((container) => ({ name: container.name, hosts: hostsOf(container) }))
    .filter(({ hosts }) => hosts.length > 0)
  if (bad.length === 0) return undefined
  const names = distinct(bad.map(({ name }) => name))
  const hosts = distinct(bad.flatMap((one) => one.hosts))
  const verb = names.length === 1 ? 'uses' : 'use'
  return { reason: 'probe or lifecycle host', detail: `${named('container', names)} ${verb} ${named('probe or lifecycle host', hosts)}` }
}

function hostsOf({ livenessProbe, readinessProbe, startupProbe, lifecycle }: AnyContainer): string[] {
  return [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].flatMap((one) => hostsIn(one))
}

function hostsIn(handler: Frozen<Probe> | Frozen<LifecycleHandler> | undefined): string[] {
  return [handler?.httpGet?.host, handler?.tcpSocket?.host].filter((host): host is string => host !== undefined && host !== '')
}

export const hostProbesAndHostLifecycle: Control = { id: 'hostProbesAndHostLifecycle', level: 'baseline', revisions: [{ since: 34, check }] }
