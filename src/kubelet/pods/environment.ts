/**
 * A container's environment (L3): service variables, envFrom, env with references, in the order in which upstream lets one override another.
 * Upstream: kubelet_pods.go makeEnvironmentVariables, kubelet/envvars (v1.36).
 */
import type { ConfigMap, EnvVar, FileKeySelector, Secret, Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { FrozenContainer, FrozenPod } from '../core/containers.ts'
import { type PodRuntimeFacts, podField, resourceField } from '../core/downwardApi.ts'
import { expand, maxWordsLength } from '../core/expansion.ts'
import { optionally } from '../core/optionally.ts'
import { environmentFileValue } from './environmentFile.ts'

export interface EnvironmentSources {
  configMap(namespace: string, name: string): Promise<Frozen<ConfigMap>>
  secret(namespace: string, name: string): Promise<Frozen<Secret>>
  /** Services of the pod's namespace and the master service. */
  services(): readonly Frozen<Service>[]
  /** The text of a file in one of the pod's volumes. @throws Error when there is no such volume or file */
  file(volumeName: string, path: string): Promise<string>
  /** A turn of the event loop for this container alone: an environment of many variables takes milliseconds, and pods start together. */
  ownTurn(): Promise<void>
}

/** The container's configuration cannot be made: shown as CreateContainerConfigError. */
export class ConfigError extends Error {}

const environmentName = (name: string) => name.toUpperCase().replaceAll('-', '_')

/** {SVC}_SERVICE_HOST and the Docker-link variables for services that have a cluster IP. */
export function* serviceVariables(services: Iterable<Frozen<Service>>): Generator<[string, string]> {
  for (const service of services) {
    const ip = service.spec.clusterIP
    const [first] = service.spec.ports ?? []
    if (!ip || ip === 'None' || !first) continue
    const prefix = environmentName(service.metadata.name ?? '')
    const joined = (port: number) => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)
    const url = (port: { readonly protocol?: string | undefined; readonly port: number }) => `${(port.protocol ?? 'TCP').toLowerCase()}://${joined(port.port)}`
    yield [`${prefix}_SERVICE_HOST`, ip]
    yield [`${prefix}_SERVICE_PORT`, String(first.port)]
    for (const { name, port } of service.spec.ports ?? []) if (name) yield [`${prefix}_SERVICE_PORT_${environmentName(name)}`, String(port)]
    yield [`${prefix}_PORT`, url(first)]
    for (const port of service.spec.ports ?? []) {
      const protocol = port.protocol ?? 'TCP'
      const base = `${prefix}_PORT_${port.port}_${protocol.toUpperCase()}`
      yield [base, url(port)]
      yield [`${base}_PROTO`, protocol.toLowerCase()]
      yield [`${base}_PORT`, String(port.port)]
      yield [`${base}_ADDR`, ip]
    }
  }
}

/** Services whose variables a container gets: the master service always, services of its namespace unless enableServiceLinks is false. */
export function relevantServices(pod: FrozenPod, services: readonly Frozen<Service>[]): Frozen<Service>[] {
  const links = pod.spec.enableServiceLinks ?? true
  const master = (service: Frozen<Service>) => service.metadata.namespace === 'default' && service.metadata.name === 'kubernetes'
  const namespace = pod.metadata.namespace
  const byName = new Map<string, Frozen<Service>>()
  for (const service of services) {
    const own = links && service.metadata.namespace === namespace
    const name = service.metadata.name ?? ''
    // A service of one's own namespace hides the master service of the same name.
    if (own || (master(service) && !byName.has(name))) byName.set(name, service)
  }
  return [...byName.values()]
}

/** Variables by name. Refuses more than a kernel starts a process with: the same ConfigMap may be named thousands of times. */
class Variables extends Map<string, string> {
  #length = 0

  override set(name: string, value: string): this {
    // Overwritten values count too, because they cost the same work.
    this.#length += name.length + value.length + variableOverhead
    if (this.#length > maxWordsLength) throw new ConfigError(`the environment has more than ${maxWordsLength} characters`)
    return super.set(name, value)
  }
}

function variablesOf(services: readonly Frozen<Service>[]): Variables {
  const variables = new Variables()
  for (const [name, value] of serviceVariables(services)) variables.set(name, value)
  return variables
}

/** Ports of services and entries of `env` that a container has in one turn of the event loop with others. */
const manyEntries = 500

/** The equals sign, the end and the pointer. */
const variableOverhead = 10

/** Characters of all variables together, as they are passed to a process. */
export function environmentLength(environment: ReadonlyMap<string, string>): number {
  let length = 0
  for (const [name, value] of environment) length += name.length + value.length + variableOverhead
  return length
}

async function envFrom(pod: FrozenPod, container: FrozenContainer, sources: EnvironmentSources, result: Variables): Promise<void> {
  const namespace = pod.metadata.namespace ?? ''
  for (const source of container.envFrom ?? []) {
    const reference = source.configMapRef ?? source.secretRef
    if (!reference) continue
    const { name = '', optional } = reference
    const data = source.configMapRef
      ? (await optionally(optional, sources.configMap(namespace, name)))?.data
      : decodeSecret(await optionally(optional, sources.secret(namespace, name)))
    for (const [key, value] of Object.entries(data ?? {})) result.set(`${source.prefix ?? ''}${key}`, value)
  }
}

function decodeSecret(secret: Frozen<Secret> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
}

async function valueFrom(
  pod: FrozenPod,
  container: FrozenContainer,
  variable: Frozen<EnvVar>,
  facts: PodRuntimeFacts,
  sources: EnvironmentSources,
): Promise<string | undefined> {
  const from = variable.valueFrom
  const namespace = pod.metadata.namespace ?? ''
  if (from?.fieldRef) return podField(pod, from.fieldRef.fieldPath, facts)
  if (from?.resourceFieldRef) return resourceField(pod, container, from.resourceFieldRef, facts.allocatable)
  if (from?.fileKeyRef) return fromFile(from.fileKeyRef, sources)
  const reference = from?.configMapKeyRef ?? from?.secretKeyRef
  if (!reference) throw new ConfigError(`environment variable ${variable.name}: this source is not supported`)
  const kind = from?.configMapKeyRef ? 'ConfigMap' : 'Secret'
  const name = reference.name ?? ''
  const reading: Promise<Frozen<ConfigMap | Secret>> = kind === 'ConfigMap' ? sources.configMap(namespace, name) : sources.secret(namespace, name)
  const written = ownValue((await optionally(reference.optional, reading))?.data, reference.key)
  const value = written !== undefined && kind === 'Secret' ? Buffer.from(written, 'base64').toString() : written
  if (value === undefined && !reference.optional) throw new ConfigError(`couldn't find key ${reference.key} in ${kind} ${namespace}/${name}`)
  return value
}

async function fromFile({ volumeName, path, key, optional }: Frozen<FileKeySelector>, sources: EnvironmentSources): Promise<string | undefined> {
  let value: string
  try {
    value = environmentFileValue(await sources.file(volumeName, path), key)
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError("couldn't parse env file", { cause: error })
  }
  if (value !== '') return value
  if (optional) return undefined
  throw new ConfigError(`environment variable key "${key}" not found in file "${path}"`)
}

/**
 * The environment in the order in which it is declared; later names win.
 * @throws ConfigError, or the Status of a missing ConfigMap or Secret.
 */
export async function makeEnvironment(
  pod: FrozenPod,
  container: FrozenContainer,
  facts: PodRuntimeFacts,
  sources: EnvironmentSources,
): Promise<Map<string, string>> {
  const linked = relevantServices(pod, sources.services())
  if (linked.reduce((ports, { spec }) => ports + (spec.ports?.length ?? 0), container.env?.length ?? 0) > manyEntries) await sources.ownTurn()
  // Few containers refer to variables of services; the others need no map of them.
  let services: Variables | undefined
  const serviceVariable = (name: string) => {
    services ??= variablesOf(linked)
    return services.get(name)
  }
  const result = new Variables()
  await envFrom(pod, container, sources, result)
  for (const variable of container.env ?? []) {
    const value =
      variable.value || !variable.valueFrom
        ? expand(variable.value ?? '', (name) => result.get(name) ?? serviceVariable(name))
        : await valueFrom(pod, container, variable, facts, sources)
    if (value === undefined) continue
    result.set(variable.name, value)
  }
  const declared = new Set(result.keys())
  for (const [name, value] of services ?? serviceVariables(linked)) if (!declared.has(name)) result.set(name, value)
  return result
}
