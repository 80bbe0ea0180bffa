/** Validation of containers: app, init (sidecars among them) and ephemeral (L1). Upstream: pkg/apis/core/validation validateContainers (v1.36). */
import type { Container, ContainerPort, EphemeralContainer, PodSpec, VolumeDevice, VolumeMount } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ipFamily } from '#api/machinery/ip'
import { isDns1123Label, isPortName, isPortNumber } from '#api/machinery/names'
import { faults, oneOf } from '../../rules.ts'
import { validateEnv, validateEnvFrom } from './validateEnv.ts'
import { validateProbesAndLifecycle } from './validateProbes.ts'
import { validateResourceRequirements } from './validateResources.ts'
import { validateSecurityContext } from './validateSecurity.ts'
import { relativePathFaults } from './validateVolumes.ts'

/** Fields of the pod that the rules of its containers depend on. */
interface PodContext {
  readonly spec: PodSpec
  readonly volumes: ReadonlySet<string>
  readonly claimVolumes: ReadonlySet<string>
  readonly resourceClaims: ReadonlySet<string>
  readonly gracePeriodSeconds: number
}

/** Fields that an ephemeral container may not have: it is never restarted, probed or scheduled. */
const notForEphemeral = [
  ...(['ports', 'livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle', 'resources', 'resizePolicy'] as const),
  ...(['restartPolicy', 'restartPolicyRules'] as const),
] as const

/** What only real pods must keep; templates may be padded, for old clients' sake. */
export function validateImages(spec: PodSpec, path: FieldPath): FieldError[] {
  return (['containers', 'initContainers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap(({ image }, i) =>
      image !== undefined && image !== image.trim()
        ? [fieldError.invalid(path.child(list).index(i).child('image'), image, 'must not have leading or trailing whitespace')]
        : [],
    ),
  )
}

/** All containers of a pod. @param path of the pod spec */
export function validateAllContainers(spec: PodSpec, path: FieldPath): FieldError[] {
  const context: PodContext = {
    spec,
    volumes: new Set((spec.volumes ?? []).map((volume) => volume.name)),
    claimVolumes: new Set((spec.volumes ?? []).filter((volume) => volume.persistentVolumeClaim || volume.ephemeral).map((volume) => volume.name)),
    resourceClaims: new Set((spec.resourceClaims ?? []).map((claim) => claim.name)),
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
  }
  const names = new Set<string>()
  const errors: FieldError[] = []
  const at = path.child('containers')
  if (!spec.containers?.length) errors.push(fieldError.required(at))
  for (const [i, container] of (spec.containers ?? []).entries()) {
    errors.push(...commonFaults(container, context, at.index(i)), ...uniqueName(container.name, names, at.index(i)))
    errors.push(...validateProbesAndLifecycle(container, context.gracePeriodSeconds, at.index(i)))
  }
  errors.push(...hostPortConflicts(spec.containers ?? [], new Set(), at))
  for (const [i, container] of (spec.initContainers ?? []).entries())
    errors.push(...initFaults(container, context, names, path.child('initContainers').index(i)))
  for (const [i, container] of (spec.ephemeralContainers ?? []).entries())
    errors.push(...ephemeralFaults(container, context, names, path.child('ephemeralContainers').index(i)))
  return errors
}

function initFaults(container: Container, context: PodContext, names: Set<string>, path: FieldPath): FieldError[] {
  const errors = [...commonFaults(container, context, path), ...uniqueName(container.name, names, path)]
  if (container.restartPolicy === 'Always') {
    errors.push(...validateProbesAndLifecycle(container, context.gracePeriodSeconds, path))
  } else {
    // Only a sidecar runs long enough to be probed.
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const)
      if (container[field]) errors.push(fieldError.forbidden(path.child(field), 'may not be set for init containers without restartPolicy=Always'))
  }
  return [...errors, ...hostPortConflicts([container], new Set(), path)]
}

function ephemeralFaults(container: EphemeralContainer, context: PodContext, names: Set<string>, path: FieldPath): FieldError[] {
  const { targetContainerName, ...common } = container
  const errors = [...commonFaults(common, context, path), ...uniqueName(container.name, names, path)]
  const known = [...(context.spec.containers ?? []), ...(context.spec.initContainers ?? [])].some((other) => other.name === targetContainerName)
  if (targetContainerName && !known) errors.push(fieldError.notFound(path.child('targetContainerName'), targetContainerName))
  for (const field of notForEphemeral) {
    if (!isEmpty(container[field])) errors.push(fieldError.forbidden(path.child(field), 'cannot be set for an Ephemeral Container'))
  }
  for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
    for (const field of ['subPath', 'subPathExpr'] as const)
      if (mount[field]) errors.push(fieldError.forbidden(path.child('volumeMounts').index(i).child(field), 'cannot be set for an Ephemeral Container'))
  }
  return errors
}

/** Does not list the keys: a text of a megabyte has a million of them. */
function isEmpty(value: string | object | undefined): boolean {
  if (typeof value !== 'object') return value === undefined || value === ''
  for (const _ in value) return false
  return true
}

function uniqueName(name: string, names: Set<string>, path: FieldPath): FieldError[] {
  if (!name) return []
  if (names.has(name)) return [fieldError.duplicate(path.child('name'), name)]
  names.add(name)
  return []
}

function commonFaults(container: Container, context: PodContext, path: FieldPath): FieldError[] {
  const { name, image } = container
  const errors = name ? faults(path.child('name'), name, isDns1123Label(name)) : [fieldError.required(path.child('name'))]
  if (!image) errors.push(fieldError.required(path.child('image')))
  errors.push(...oneOf(container.terminationMessagePolicy, ['File', 'FallbackToLogsOnError'], path.child('terminationMessagePolicy')))
  errors.push(...portFaults(container.ports, context.spec.hostNetwork === true, path.child('ports')))
  errors.push(...validateEnv(container.env, path.child('env')), ...validateEnvFrom(container.envFrom, path.child('envFrom')))
  errors.push(...mountFaults(container, context, path.child('volumeMounts')))
  errors.push(...deviceFaults(container.volumeDevices, context, path.child('volumeDevices')))
  errors.push(...oneOf(container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never'], path.child('imagePullPolicy')))
  errors.push(...validateResourceRequirements(container.resources, context.resourceClaims, path.child('resources')))
  errors.push(...resizeFaults(container, context.spec, path.child('resizePolicy')))
  errors.push(...validateSecurityContext(container.securityContext, context.spec.hostUsers, path.child('securityContext')))
  return [...errors, ...restartFaults(container, path)]
}

const maxRestartRules = 20
const maxExitCodes = 255

function restartFaults({ restartPolicy, restartPolicyRules: rules = [] }: Container, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const [at, list] = [path.child('restartPolicy'), path.child('restartPolicyRules')]
  if (restartPolicy !== undefined) errors.push(...oneOf(restartPolicy, ['Always', 'Never', 'OnFailure'], at))
  else if (rules.length > 0) errors.push(fieldError.required(at, 'must specify restartPolicy when restart rules are used'))
  if (rules.length > maxRestartRules) errors.push(fieldError.tooMany(list, rules.length, maxRestartRules))
  for (const [i, { action, exitCodes }] of rules.entries()) {
    const rule = list.index(i)
    if (!restartActions.includes(action)) errors.push(fieldError.notSupported(rule.child('action'), action ?? '', restartActions))
    if (!exitCodes) {
      errors.push(fieldError.required(rule.child('exitCodes'), 'must be specified'))
      continue
    }
    const { operator, values = [] } = exitCodes
    if (operator !== 'In' && operator !== 'NotIn') errors.push(fieldError.notSupported(rule.child('exitCodes', 'operator'), operator ?? '', ['In', 'NotIn']))
    if (values.length > maxExitCodes) errors.push(fieldError.tooMany(rule.child('exitCodes', 'values'), values.length, maxExitCodes))
  }
  return errors
}

const restartActions = ['Restart', 'RestartAllContainers']

function portFaults(ports: readonly ContainerPort[] | undefined, hostNetwork: boolean, path: FieldPath): FieldError[] {
  const names = new Set<string>()
  return (ports ?? []).flatMap((port, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (port.name) {
      const faulty = faults(at.child('name'), port.name, isPortName(port.name))
      errors.push(...faulty)
      if (faulty.length === 0 && names.has(port.name)) errors.push(fieldError.duplicate(at.child('name'), port.name))
      names.add(port.name)
    }
    errors.push(
      ...(port.containerPort
        ? faults(at.child('containerPort'), port.containerPort, isPortNumber(port.containerPort))
        : [fieldError.required(at.child('containerPort'))]),
    )
    if (port.hostPort) errors.push(...faults(at.child('hostPort'), port.hostPort, isPortNumber(port.hostPort)))
    // A template may leave the host port out; a pod's has been filled in by now.
    if (hostNetwork && port.hostPort && port.hostPort !== port.containerPort)
      errors.push(fieldError.invalid(at.child('hostPort'), port.hostPort, 'must match `containerPort` when `hostNetwork` is true'))
    if (port.hostIP && ipFamily(port.hostIP) === undefined)
      errors.push(fieldError.invalid(at.child('hostIP'), port.hostIP, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'))
    return [...errors, ...oneOf(port.protocol, ['SCTP', 'TCP', 'UDP'], at.child('protocol'))]
  })
}

function hostPortConflicts(containers: readonly Container[], taken: Set<string>, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const [i, container] of containers.entries()) {
    for (const [j, port] of (container.ports ?? []).entries()) {
      if (!port.hostPort) continue
      const id = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`
      if (taken.has(id)) errors.push(fieldError.duplicate(path.index(i).child('ports').index(j).child('hostPort'), id))
      taken.add(id)
    }
  }
  return errors
}

function mountFaults(container: Container, { volumes, claimVolumes }: PodContext, path: FieldPath): FieldError[] {
  const mountPaths = new Set<string>()
  const devices = new Map((container.volumeDevices ?? []).map((device) => [device.name, device.devicePath]))
  return (container.volumeMounts ?? []).flatMap((mount, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!mount.name) errors.push(fieldError.required(at.child('name')))
    if (!volumes.has(mount.name)) errors.push(fieldError.notFound(at.child('name'), mount.name))
    if (!mount.mountPath) errors.push(fieldError.required(at.child('mountPath')))
    if (mountPaths.has(mount.mountPath)) errors.push(fieldError.invalid(at.child('mountPath'), mount.mountPath, 'must be unique'))
    mountPaths.add(mount.mountPath)
    if (claimVolumes.has(mount.name) && devices.has(mount.name))
      errors.push(fieldError.invalid(at.child('name'), mount.name, 'must not already exist in volumeDevices'))
    if ([...devices.values()].includes(mount.mountPath))
      errors.push(fieldError.invalid(at.child('mountPath'), mount.mountPath, 'must not already exist as a path in volumeDevices'))
    if (mount.subPath) errors.push(...relativePathFaults(mount.subPath, path.child('subPath')))
    if (mount.subPathExpr) {
      if (mount.subPath) errors.push(fieldError.invalid(at.child('subPathExpr'), mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive'))
      errors.push(...relativePathFaults(mount.subPathExpr, path.child('subPathExpr')))
    }
    // These paths lack the index: upstream's quirk.
    return [...errors, ...propagationFaults(mount, container, path)]
  })
}

function propagationFaults(mount: VolumeMount, container: Container, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const at = path.child('mountPropagation')
  if (mount.mountPropagation !== undefined) {
    if (!['Bidirectional', 'HostToContainer', 'None'].includes(mount.mountPropagation))
      errors.push(fieldError.notSupported(at, mount.mountPropagation, ['Bidirectional', 'HostToContainer', 'None']))
    if (mount.mountPropagation === 'Bidirectional' && !container.securityContext?.privileged)
      errors.push(fieldError.forbidden(at, 'Bidirectional mount propagation is available only to privileged containers'))
  }
  if (mount.recursiveReadOnly !== undefined && mount.recursiveReadOnly !== 'Disabled') {
    const recursive = path.child('recursiveReadOnly')
    errors.push(...oneOf(mount.recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible'], recursive))
    if (!mount.readOnly) errors.push(fieldError.forbidden(recursive, 'may only be specified when readOnly is true'))
    if (mount.mountPropagation !== undefined && mount.mountPropagation !== 'None')
      errors.push(fieldError.forbidden(recursive, 'may only be specified when mountPropagation is None or not specified'))
  }
  return errors
}

function deviceFaults(devices: readonly VolumeDevice[] | undefined, { volumes, claimVolumes }: PodContext, path: FieldPath): FieldError[] {
  const paths = new Set<string>()
  return (devices ?? []).flatMap((device, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!device.name) errors.push(fieldError.required(at.child('name')))
    else if (!volumes.has(device.name)) errors.push(fieldError.notFound(at.child('name'), device.name))
    else if (!claimVolumes.has(device.name))
      errors.push(fieldError.invalid(at.child('name'), device.name, 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'))
    if (!device.devicePath) errors.push(fieldError.required(at.child('devicePath')))
    if (device.devicePath?.split('/').includes('..'))
      errors.push(fieldError.invalid(at.child('devicePath'), device.devicePath, "can not contain backsteps ('..')"))
    if (paths.has(device.devicePath)) errors.push(fieldError.invalid(at.child('devicePath'), device.devicePath, 'must be unique'))
    paths.add(device.devicePath)
    return errors
  })
}

function resizeFaults(container: Container, spec: PodSpec, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  return (container.resizePolicy ?? []).flatMap(({ resourceName, restartPolicy }, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (seen.has(resourceName)) errors.push(fieldError.duplicate(at, resourceName))
    seen.add(resourceName)
    if (!resourceName) errors.push(fieldError.required(path))
    else if (!['cpu', 'memory'].includes(resourceName)) errors.push(fieldError.notSupported(path, resourceName, ['cpu', 'memory']))
    if (!restartPolicy) errors.push(fieldError.required(path))
    else if (!['NotRequired', 'RestartContainer'].includes(restartPolicy))
      errors.push(fieldError.notSupported(path, restartPolicy, ['NotRequired', 'RestartContainer']))
    if (spec.restartPolicy === 'Never' && restartPolicy !== 'NotRequired')
      errors.push(fieldError.invalid(path, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    return errors
  })
}
