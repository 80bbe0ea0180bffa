/** Warnings about pods and templates: what works, but surprises or goes away (L1). Upstream: pkg/api/pod/warnings.go (v1.36). */
import type { Container, Pod, PodSpec, PodTemplateSpec } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { isDns1123Label } from '#api/machinery/names'

const deprecatedLabels: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}

export function podWarnings(pod: Pod): string[] {
  const faults = isDns1123Label(pod.metadata.name ?? '')
  const name = faults.length > 0 && pod.metadata.name
  return [
    ...(name
      ? [`metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${faults.join(' ')}]`]
      : []),
    ...specWarnings(pod.spec, FieldPath.of('spec')),
  ]
}

/** About a workload whose pods carry its name. */
export function workloadNameWarnings(name: string | undefined): string[] {
  const faults = isDns1123Label(name ?? '')
  if (!name || faults.length === 0) return []
  return [`metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [${faults.join(' ')}]`]
}

export function podTemplateWarnings(template: PodTemplateSpec | undefined, path: FieldPath): string[] {
  return template?.spec ? specWarnings(template.spec, path.child('spec')) : []
}

function specWarnings(spec: PodSpec, path: FieldPath): string[] {
  const warnings: string[] = []
  for (const key in spec.nodeSelector) if (deprecatedLabels[key]) warnings.push(`${path.child('nodeSelector').key(key)}: ${deprecatedLabels[key]}`)
  for (const [i, volume] of (spec.volumes ?? []).entries()) {
    if (volume.gitRepo) warnings.push(`${path.child('volumes').index(i).child('gitRepo')}: deprecated in v1.11, and disabled by default in v1.33+`)
    if (volume.glusterfs)
      warnings.push(
        `${path.child('volumes').index(i).child('glusterfs')}: deprecated in v1.25, this feature will be removed soon after in a subsequent release`,
      )
  }
  const secrets = new Set<string>()
  for (const [i, { name }] of (spec.imagePullSecrets ?? []).entries()) {
    if (!name) warnings.push(`${path.child('imagePullSecrets').index(i).child('name')}: invalid empty name ""`)
    else if (secrets.has(name)) warnings.push(`${path.child('imagePullSecrets').index(i).child('name')}: duplicate name ${JSON.stringify(name)}`)
    secrets.add(name ?? '')
  }
  if (spec.hostNetwork === undefined && spec.terminationGracePeriodSeconds !== undefined && spec.terminationGracePeriodSeconds < 0)
    warnings.push(`${path.child('terminationGracePeriodSeconds')}: must be >= 0; negative values are invalid and will be treated as 1`)
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [i, container] of (spec[list] ?? []).entries()) warnings.push(...containerWarnings(container, path.child(list).index(i)))
  }
  warnings.push(...portNameWarnings(spec, path))
  return warnings
}

function containerWarnings(container: Container, path: FieldPath): string[] {
  const warnings: string[] = []
  for (const kind of ['limits', 'requests'] as const) {
    const storage = container.resources?.[kind]?.['ephemeral-storage']
    if (storage && /\dm$/.test(storage))
      warnings.push(
        `${path.child('resources', kind).key('ephemeral-storage')}: fractional byte value ${JSON.stringify(storage)} is invalid, must be an integer`,
      )
    const memory = container.resources?.[kind]?.memory
    if (memory && /\dm$/.test(memory))
      warnings.push(`${path.child('resources', kind).key('memory')}: fractional byte value ${JSON.stringify(memory)} is invalid, must be an integer`)
  }
  const seen = new Map<string, number>()
  for (const [i, { name, value }] of (container.env ?? []).entries()) {
    const before = seen.get(name)
    const at = path.child('env').index(i)
    if (before !== undefined) {
      // A later value may extend the earlier one on purpose: "$(PATH):/more".
      if (!value?.includes(`$(${name})`)) warnings.push(`${at}: hides previous definition of ${JSON.stringify(name)}, which may be unexpected behavior`)
    }
    seen.set(name, i)
  }
  return warnings
}

function portNameWarnings(spec: PodSpec, path: FieldPath): string[] {
  const warnings: string[] = []
  const ports = new Map<string, string>()
  const names = new Set<string>()
  for (const [i, container] of (spec.containers ?? []).entries()) {
    for (const [j, port] of (container.ports ?? []).entries()) {
      const at = path.child('containers').index(i).child('ports').index(j).toString()
      const id = `${port.containerPort}/${port.protocol}/${port.hostPort ?? ''}/${port.hostIP ?? ''}`
      const before = ports.get(id)
      if (before !== undefined) warnings.push(`${at}: duplicate port definition with ${before}`)
      ports.set(id, at)
      if (port.name && names.has(port.name))
        warnings.push(`${at}: duplicate port name ${JSON.stringify(port.name)}, services and probes that select ports by name will use the first one`)
      if (port.name) names.add(port.name)
    }
  }
  return warnings
}
