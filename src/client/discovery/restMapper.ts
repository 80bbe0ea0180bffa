/**
 * Maps names that people and manifests use to resources (L2): kinds, plural and singular names, short names, with or without a group
 * and version. An unknown name is looked up again once: a CRD may have been created since. Upstream: client-go/restmapper discovery.go, shortcut.go (v1.36).
 */
import type { Unstructured } from '#api/machinery/meta'
import { parseGroupVersion } from '#api/machinery/meta'
import type { Client, ResourceClient } from '../client.ts'
import type { DiscoveredResource, Discovery } from './discovery.ts'

/** The server has nothing of that name. */
export class NoMatchError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NoMatchError'
  }
}

export interface RestMapper {
  /** The resource of a kind, as manifests name it. @throws NoMatchError */
  forKind(apiVersion: string, kind: string, signal?: AbortSignal): Promise<DiscoveredResource>
  /** The resource of what one types: deploy, deployments, deployment.apps, deployments.v1.apps, Deployment. @throws NoMatchError */
  forName(name: string, signal?: AbortSignal): Promise<DiscoveredResource>
  /** The resources of a category, such as `all`; none when there is no such category. */
  forCategory(category: string, signal?: AbortSignal): Promise<readonly DiscoveredResource[]>
}

export function createRestMapper(discovery: Discovery): RestMapper {
  const find = async <T>(look: (resources: readonly DiscoveredResource[]) => T | undefined, signal: AbortSignal | undefined): Promise<T | undefined> => {
    const remembered = discovery.remembers()
    const found = look((await discovery.resources(signal)).resources)
    if (found !== undefined || !remembered) return found
    discovery.invalidate()
    return look((await discovery.resources(signal)).resources)
  }
  return {
    async forKind(apiVersion, kind, signal) {
      const { group, version } = parseGroupVersion(apiVersion)
      const is = (one: DiscoveredResource) => one.kind === kind && one.group === group && one.version === version
      const found = await find((resources) => resources.find(is), signal)
      if (!found) throw new NoMatchError(`no matches for kind "${kind}" in version "${apiVersion}"`)
      return found
    },
    async forName(name, signal) {
      const found = await find((resources) => findByName(resources, name), signal)
      if (!found) throw new NoMatchError(`the server doesn't have a resource type "${name}"`)
      return found
    },
    async forCategory(category, signal) {
      const members = (await discovery.resources(signal)).resources.filter(({ categories }) => categories.includes(category))
      return members.filter((one) => members.find((other) => other.group === one.group && other.resource === one.resource) === one)
    },
  }
}

/** Any resource, by its kind: what generic tools work with. */
export interface DynamicClient {
  forKind(apiVersion: string, kind: string, signal?: AbortSignal): Promise<ResourceClient<Unstructured>>
  forName(name: string, signal?: AbortSignal): Promise<ResourceClient<Unstructured>>
}

export function createDynamicClient(client: Client, mapper: RestMapper): DynamicClient {
  return {
    forKind: async (apiVersion, kind, signal) => client.of(await mapper.forKind(apiVersion, kind, signal)),
    forName: async (name, signal) => client.of(await mapper.forName(name, signal)),
  }
}

/** `pods`, `deployments.apps`, `deployments.v1.apps`: a version is taken for one only where such a group version is served. */
function findByName(resources: readonly DiscoveredResource[], typed: string): DiscoveredResource | undefined {
  const [name = '', ...rest] = typed.split('.')
  const [version, ...groupParts] = rest
  if (version !== undefined) {
    const inVersion = among(
      resources.filter((one) => one.version === version && one.group === groupParts.join('.')),
      name,
    )
    if (inVersion) return inVersion
  }
  const group = rest.join('.')
  return among(rest.length === 0 ? resources : resources.filter((one) => one.group === group || one.group.startsWith(`${group}.`)), name)
}

/** Full names take precedence over short names, whatever their group. */
function among(resources: readonly DiscoveredResource[], name: string): DiscoveredResource | undefined {
  const lower = name.toLowerCase()
  return (
    resources.find((one) => one.resource === lower) ??
    resources.find((one) => (one.singularName || one.kind.toLowerCase()) === lower) ??
    resources.find((one) => one.kind === name) ??
    resources.find((one) => one.shortNames.includes(lower))
  )
}
