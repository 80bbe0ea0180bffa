/**
 * Which kubeconfig holds (L2): several files made into one, the file that one names, the list of KUBECONFIG, ~/.kube/config, or inside a pod
 * the service account's. Reading is the caller's. Upstream: client-go/tools/clientcmd loader.go, rest/config.go InClusterConfig (v1.36).
 */
import { parseYaml } from '#api/machinery/yaml'
import type { Kubeconfig, KubeconfigCluster, KubeconfigUser } from './kubeconfig.ts'

/** Inputs of the search for a kubeconfig. */
export interface KubeconfigPlace {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  /** @throws Error with code ENOENT for a file that is not there. */
  readFile(path: string): Promise<Buffer>
  /** Between the paths of a list: ':' or ';'. */
  readonly listSeparator: string
  /** `path` seen from `folder`, absolute. */
  resolve(folder: string, path: string): string
  dirname(path: string): string
}

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * The kubeconfig of `file`, or else of KUBECONFIG, ~/.kube/config, the pod's service account, in this order. Files of a list may be missing,
 * a file that is named alone may not.
 * @throws Error when nothing is found.
 */
export async function findKubeconfig(place: KubeconfigPlace, file?: string): Promise<Kubeconfig> {
  if (file !== undefined) return readKubeconfig(place, file)
  const listed = (place.env.KUBECONFIG ?? '').split(place.listSeparator).filter((path) => path !== '')
  const files = listed.length > 0 ? listed : [place.resolve(place.home, '.kube/config')]
  const found: Kubeconfig[] = []
  for (const path of files) {
    try {
      found.push(await readKubeconfig(place, path))
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw error
    }
  }
  if (found.length > 0) return mergeKubeconfigs(found)
  const inCluster = await inClusterKubeconfig(place)
  if (inCluster) return inCluster
  throw new Error(`no kubeconfig was found: neither ${files.join(' nor ')} is there, and this is not a pod`)
}

/** Reads one kubeconfig; what it names relative to itself becomes absolute. @throws Error for one that is no kubeconfig */
export async function readKubeconfig(place: Pick<KubeconfigPlace, 'readFile' | 'resolve' | 'dirname'>, file: string): Promise<Kubeconfig> {
  const text = (await place.readFile(file)).toString()
  let config: Kubeconfig
  try {
    config = Object(parseYaml(text)) as Kubeconfig
  } catch (error) {
    throw new Error(`error loading config file "${file}": ${(error as Error).message}`, { cause: error })
  }
  const folder = place.resolve('.', place.dirname(file))
  const absolute = (path: string | undefined) => (path ? place.resolve(folder, path) : path)
  const clusterHere = (cluster: KubeconfigCluster): KubeconfigCluster => ({
    ...cluster,
    'certificate-authority': absolute(cluster['certificate-authority']),
  })
  const userHere = (user: KubeconfigUser): KubeconfigUser => ({
    ...user,
    'client-certificate': absolute(user['client-certificate']),
    'client-key': absolute(user['client-key']),
    tokenFile: absolute(user.tokenFile),
    // A bare name is looked for in PATH.
    exec: user.exec?.command.includes('/') ? { ...user.exec, command: place.resolve(folder, user.exec.command) } : user.exec,
  })
  return {
    ...config,
    clusters: config.clusters?.map(({ name, cluster }) => ({ name, cluster: clusterHere(cluster) })),
    users: config.users?.map(({ name, user }) => ({ name, user: userHere(user ?? {}) })),
  }
}

/** An entry of an earlier file takes precedence over one of the same name in a later file. */
export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  const merged = <E extends { readonly name: string }>(lists: readonly (readonly E[] | null | undefined)[]): E[] => {
    const byName = new Map<string, E>()
    for (const list of lists) for (const entry of list ?? []) if (!byName.has(entry.name)) byName.set(entry.name, entry)
    return [...byName.values()]
  }
  return {
    'current-context': configs.map((config) => config['current-context']).find((name) => name),
    clusters: merged(configs.map(({ clusters }) => clusters)),
    users: merged(configs.map(({ users }) => users)),
    contexts: merged(configs.map(({ contexts }) => contexts)),
  }
}

/** The configuration from a pod's environment and service account; undefined outside a pod. */
export async function inClusterKubeconfig({ env, readFile }: Pick<KubeconfigPlace, 'env' | 'readFile'>): Promise<Kubeconfig | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (!host || !port) return undefined
  const namespace = await readFile(`${serviceAccountFolder}/namespace`).catch(() => undefined)
  const name = 'in-cluster'
  return {
    'current-context': name,
    clusters: [
      {
        name,
        cluster: { server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, 'certificate-authority': `${serviceAccountFolder}/ca.crt` },
      },
    ],
    users: [{ name, user: { tokenFile: `${serviceAccountFolder}/token` } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: namespace?.toString().trim() } }],
  }
}
