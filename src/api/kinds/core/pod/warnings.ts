/** Warnings about pods and templates: what works, but surprises or goes away (L1). Upstream: pkg/api/pod/warnings.go, pkg/api/node/util.go (v1.36). */
import type { Container, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec, Volume } from '#api/gen/types/core.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { FieldPath } from '#api/machinery/fieldPath'
import { ipWarnings } from '#api/machinery/formats'
import type { Frozen, ObjectMeta } from '#api/machinery/meta'
import { isDns1123Label, isLabelValue } from '#api/machinery/names'
import { ownValue } from '#base/bareMap'
import { nodeExpressionWarnings, nodeLabelWarnings } from '../../nodeLabelWarnings.ts'
import { fractionWarnings } from '../fractions.ts'
import { claimWarnings } from '../validateClaim.ts'
import { overlappingPathWarnings } from './volumeWarnings.ts'

type Metadata = Pick<ObjectMeta, 'annotations'> | undefined

const deprecatedAnnotations: Readonly<Record<string, string>> = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
}

const sizes = ['memory', 'ephemeral-storage']
const none: readonly never[] = []

/** Volume types that are gone or going; the words are upstream's. */
const deprecatedVolumes: readonly [type: keyof Volume, name: string, since: string][] = [
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['quobyte', 'quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
]

/** At creation about the whole pod; an update changes nothing that is warned about. */
export function podWarnings(pod: Pod, old?: Frozen<Pod>): string[] {
  if (old) return []
  const wrong = isDns1123Label(pod.metadata.name ?? '')
  const surprising = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
  const named = pod.metadata.name && wrong.length > 0 ? [`${surprising}: [${wrong.join(' ')}]`] : []
  return [...named, ...specWarnings(pod.spec, pod.metadata, undefined)]
}

/** About a workload whose pods carry its name. */
export function workloadNameWarnings(name: string | undefined): string[] {
  const faults = isDns1123Label(name ?? '')
  if (!name || faults.length === 0) return []
  return [`metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [${faults.join(' ')}]`]
}

/** @param path of the template */
export function podTemplateWarnings(template: PodTemplateSpec | undefined, path: FieldPath): string[] {
  return template?.spec ? specWarnings(template.spec, template.metadata, path) : []
}

/** @param template path of the template; undefined for a real pod */
function specWarnings(spec: PodSpec, metadata: Metadata, template: FieldPath | undefined): string[] {
  const path = template ? template.child('spec') : FieldPath.of('spec')
  const annotations = metadata?.annotations && (template ?? FieldPath.of()).child('metadata', 'annotations')
  const containers = containersOf(spec, path)
  const withPorts = containers.filter(({ container }) => container.ports)
  return [
    ...nodeWarnings(spec, path),
    ...(annotations ? annotationWarnings(metadata, annotations) : none),
    ...(spec.volumes ?? none).flatMap((volume, i) => volumeWarnings(volume, path.child('volumes').index(i))),
    ...overlappingPathWarnings(spec.volumes),
    ...duplicateWarnings(spec, path),
    ...(spec.overhead ? fractionWarnings(spec.overhead, sizes, path.child('overhead')) : none),
    ...(annotations ? profileWarnings(spec, containers, metadata, annotations, template !== undefined) : none),
    ...containers.flatMap(({ container, at }) => containerWarnings(container, at)),
    ...portWarnings(withPorts),
    ...portNameWarnings(withPorts),
    ...((spec.terminationGracePeriodSeconds ?? 0) < 0
      ? [`${path.child('terminationGracePeriodSeconds')}: must be >= 0; negative values are invalid and will be treated as 1`]
      : none),
    ...(spec.affinity ? affinityWarnings(spec, path.child('affinity')) : none),
    ...(spec.dnsConfig?.nameservers ?? none).flatMap((ip, i) => ipWarnings(ip, path.child('dnsConfig', 'nameservers').index(i))),
    ...(spec.hostAliases ?? none).flatMap(({ ip }, i) => ipWarnings(ip, path.child('hostAliases').index(i).child('ip'))),
  ]
}

function annotationWarnings(metadata: Metadata, path: FieldPath): string[] {
  return Object.entries(deprecatedAnnotations).flatMap(([key, message]) =>
    ownValue(metadata?.annotations, key) === undefined ? [] : [`${path.key(key)}: ${message}`],
  )
}

function volumeWarnings(volume: Volume, path: FieldPath): readonly string[] {
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec
  // Most volumes are of no such type, and many pods have some.
  const deprecated = deprecatedVolumes.filter(([type]) => volume[type])
  if (!claim && deprecated.length === 0) return none
  return [
    ...deprecated.map(([, name, since]) => `${path.child(name)}: ${since}`),
    ...(claim ? claimWarnings(claim, path.child('ephemeral', 'volumeClaimTemplate', 'spec')) : []),
  ]
}

interface PlacedContainer {
  readonly container: Container
  readonly at: FieldPath
}

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const

function containersOf(spec: PodSpec, path: FieldPath): PlacedContainer[] {
  const found: PlacedContainer[] = []
  for (const list of containerLists) for (const [i, container] of (spec[list] ?? none).entries()) found.push({ container, at: path.child(list).index(i) })
  return found
}

function nodeWarnings(spec: PodSpec, path: FieldPath): readonly string[] {
  if (!spec.nodeSelector && !spec.affinity && !spec.topologySpreadConstraints) return none
  const node = spec.affinity?.nodeAffinity
  const at = path.child('affinity', 'nodeAffinity')
  const required = at.child('requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms')
  const preferred = at.child('preferredDuringSchedulingIgnoredDuringExecution')
  return [
    ...Object.keys(spec.nodeSelector ?? {}).flatMap((key) => nodeLabelWarnings(key, path.child('nodeSelector').key(key), false)),
    ...(node?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []).flatMap((term, i) =>
      nodeExpressionWarnings(term.matchExpressions, required.index(i)),
    ),
    ...(node?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap((term, i) =>
      preferenceWarnings(term.preference.matchExpressions, preferred.index(i).child('preference')),
    ),
    ...(spec.topologySpreadConstraints ?? []).flatMap(({ topologyKey, labelSelector }, i) => {
      const constraint = path.child('topologySpreadConstraints').index(i)
      return [...nodeLabelWarnings(topologyKey, constraint.child('topologyKey'), true), ...nullSelector(labelSelector, constraint.child('labelSelector'))]
    }),
  ]
}

/** A preference for a value that no label can have is allowed, and never met. */
function preferenceWarnings(expressions: NodeSelectorTerm['matchExpressions'], path: FieldPath): string[] {
  const values = (expressions ?? []).flatMap(({ values }, i) =>
    (values ?? []).flatMap((value, j) => {
      const at = path.child('matchExpressions').index(i).child('values').index(j)
      return isLabelValue(value).map((fault) => `${at}: ${value} is invalid, ${fault}`)
    }),
  )
  return [...nodeExpressionWarnings(expressions, path), ...values]
}

const nullSelector = (selector: unknown, at: FieldPath): string[] => (selector ? [] : [`${at}: a null labelSelector results in matching no pod`])

function affinityWarnings(spec: PodSpec, path: FieldPath): string[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const affinity = spec.affinity?.[kind]
    const [required, preferred] = ['requiredDuringSchedulingIgnoredDuringExecution', 'preferredDuringSchedulingIgnoredDuringExecution'] as const
    return [
      ...(affinity?.[required] ?? []).flatMap((term, i) => nullSelector(term.labelSelector, path.child(kind, required).index(i).child('labelSelector'))),
      ...(affinity?.[preferred] ?? []).flatMap(({ podAffinityTerm: term }, i) =>
        nullSelector(term.labelSelector, path.child(kind, preferred).index(i).child('podAffinityTerm', 'labelSelector')),
      ),
    ]
  })
}

function duplicateWarnings(spec: PodSpec, path: FieldPath): readonly string[] {
  if (!spec.hostAliases && !spec.imagePullSecrets) return none
  const repeated = (values: readonly string[]) => [...repeatedAt(values)].map((i) => ({ value: JSON.stringify(values[i]), i }))
  const secrets = (spec.imagePullSecrets ?? []).map(({ name = '' }) => name)
  const secret = (i: number) => path.child('imagePullSecrets').index(i).child('name')
  return [
    ...repeated((spec.hostAliases ?? []).map(({ ip }) => ip)).map(({ value, i }) => `${path.child('hostAliases').index(i).child('ip')}: duplicate ip ${value}`),
    ...repeated(secrets).map(({ value, i }) => `${secret(i)}: duplicate name ${value}`),
    ...secrets.flatMap((name, i) => (name === '' ? [`${secret(i)}: invalid empty name ""`] : [])),
  ]
}

/** Annotations that fields have replaced. A real pod's AppArmor annotations still count, so only templates are warned about those. */
function profileWarnings(spec: PodSpec, containers: readonly PlacedContainer[], metadata: Metadata, path: FieldPath, isTemplate: boolean): string[] {
  const about = (key: string, message: string) => (ownValue(metadata?.annotations, key) === undefined ? [] : [`${path.key(key)}: ${message}`])
  const seccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead'
  const { seccompProfile, appArmorProfile } = spec.securityContext ?? {}
  return [
    ...(seccompProfile ? [] : about('seccomp.security.alpha.kubernetes.io/pod', seccomp)),
    ...containers.flatMap(({ container: { name, securityContext } }) => [
      ...(securityContext?.seccompProfile ? [] : about(`container.seccomp.security.alpha.kubernetes.io/${name}`, seccomp)),
      ...(isTemplate && !appArmorProfile && !securityContext?.appArmorProfile
        ? about(`container.apparmor.security.beta.kubernetes.io/${name}`, 'deprecated since v1.30; use the "appArmorProfile" field instead')
        : []),
    ]),
  ]
}

function containerWarnings({ env, resources }: Container, path: FieldPath): string[] {
  const { limits, requests } = resources ?? {}
  return [
    ...(limits ? fractionWarnings(limits, sizes, path.child('resources', 'limits')) : none),
    ...(requests ? fractionWarnings(requests, sizes, path.child('resources', 'requests')) : none),
    ...(env ? variableWarnings(env, path) : none),
  ]
}

function variableWarnings(env: NonNullable<Container['env']>, path: FieldPath): string[] {
  const seen = new Set<string>()
  return env.flatMap(({ name, value = '', valueFrom }, i) => {
    const before = seen.has(name)
    seen.add(name)
    // A later value may extend the earlier one on purpose: "$(PATH):/more".
    const extended = !valueFrom && value.includes(`$(${name})`) && value !== `$(${name})`
    return before && !extended
      ? [`${path.child('env').index(i)}: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`]
      : []
  })
}

function portWarnings(containers: readonly PlacedContainer[]): readonly string[] {
  if (containers.length === 0) return none
  const ports = containers.flatMap(({ container, at }) =>
    (container.ports ?? []).map(({ name = '', containerPort, protocol = '', hostIP = '', hostPort = 0 }, i) => ({
      id: `${containerPort}/${protocol}`,
      ...{ name, containerPort, protocol, hostIP, hostPort, at: at.child('ports').index(i) },
    })),
  )
  const others = new Map<string, (typeof ports)[number][]>()
  return ports.flatMap((port) => {
    const same = others.get(port.id) ?? []
    others.set(port.id, [...same, port])
    // As Go prints a struct.
    const shown = `{Name:${port.name} HostPort:${port.hostPort} ContainerPort:${port.containerPort} Protocol:${port.protocol} HostIP:${port.hostIP}}`
    const lonely = port.hostIP !== '' && port.hostPort === 0 ? [`${port.at}: hostIP set without hostPort: ${shown}`] : []
    return [...lonely, ...same.flatMap((other) => portConflict(port, other))]
  })
}

function portNameWarnings(containers: readonly PlacedContainer[]): readonly string[] {
  if (containers.length === 0) return none
  const first = new Map<string, FieldPath>()
  return containers.flatMap(({ container, at }) =>
    (container.ports ?? []).flatMap(({ name }, i) => {
      const port = at.child('ports').index(i)
      const other = first.get(name ?? '')
      if (name && !other) first.set(name, port)
      if (!name || !other) return []
      const used = `services and probes that select ports by name will use ${other}`
      return [`${port}: duplicate port name ${JSON.stringify(name)} with ${other}, ${used}`]
    }),
  )
}

interface Port {
  readonly hostIP: string
  readonly hostPort: number
  readonly at: FieldPath
}

function portConflict(port: Port, other: Port): string[] {
  const samePort = port.hostPort === other.hostPort
  if (samePort && port.hostIP === other.hostIP) return [`${port.at}: duplicate port definition with ${other.at}`]
  if (port.hostPort === 0 || other.hostPort === 0) return [`${port.at}: overlapping port definition with ${other.at}`]
  const oneOpen = (port.hostIP === '') !== (other.hostIP === '')
  return samePort && oneOpen ? [`${port.at}: dangerously ambiguous port definition with ${other.at}`] : []
}
