/**
 * Reads and writes kubeconfig files as kubectl and kind do (L4): the file is chosen the same way, other entries and unknown fields stay, a lock
 * file guards the read-modify-write, the new text replaces the old in one move, mode 0600.
 * Upstream: client-go/tools/clientcmd/loader.go, config.go.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseYaml, toYaml } from '#api/machinery/yaml'
import type { Clock } from '#base/clock'
import { findKubeconfig, type KubeconfigPlace } from '#client/kubeconfigFiles'
import { exists, makeDirectory, writeFileAtomic } from '#host/files'
import { withLockFile } from '#host/lockFile'
import { CommandError } from './exitCodes.ts'
import { asCommandError } from './systemErrors.ts'

export interface KubeconfigEntry {
  /** Name of the cluster, the user and the context. */
  readonly name: string
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly clientCert: string
  readonly clientKey: string
  /** The cluster's. Merging writes it to the file, so that the entry can be taken out when the cluster is gone. */
  readonly directory?: string
}

interface Named {
  name: string
  [field: string]: unknown
}

type Kubeconfig = Record<string, unknown> & { clusters: Named[]; users: Named[]; contexts: Named[]; 'current-context': string }

export interface KubeconfigEnvironment {
  /** --kubeconfig */
  readonly flag?: string | undefined
  /** $KUBECONFIG */
  readonly variable?: string | undefined
  readonly home: string
}

const lockTimeoutMs = 10_000

/** What Skiff keeps in its contexts; kubectl leaves it there. */
const extensionName = 'skiff.dev/cluster'

export const contextName = (cluster: string) => `skiff-${cluster}`

/** The file that a change goes to: the flag's; else the first existing one of $KUBECONFIG, or its last; else ~/.kube/config. */
export async function kubeconfigPath(environment: KubeconfigEnvironment): Promise<string> {
  if (environment.flag) return path.resolve(environment.flag)
  const listed = (environment.variable ?? '').split(path.delimiter).filter(Boolean)
  for (const file of listed) {
    if (await exists(file)) return path.resolve(file)
  }
  const last = listed.at(-1)
  return last ? path.resolve(last) : path.join(environment.home, '.kube', 'config')
}

/** The files that kubectl reads in this environment. */
export function kubeconfigPlace({ env, home }: Pick<KubeconfigPlace, 'env' | 'home'>): KubeconfigPlace {
  return { env, home, readFile: fs.readFile, listSeparator: path.delimiter, resolve: path.resolve, dirname: path.dirname }
}

/** Where kubectl goes without flags; undefined where no kubeconfig says so, or none can be read. */
export async function currentContext(place: KubeconfigPlace): Promise<{ readonly name: string; readonly server: string } | undefined> {
  const config = await findKubeconfig(place).catch(() => undefined)
  const name = config?.['current-context']
  const context = config?.contexts?.find((one) => one.name === name)?.context
  const server = config?.clusters?.find((one) => one.name === context?.cluster)?.cluster?.server
  return name && server ? { name, server } : undefined
}

/** Adds or replaces an entry and makes it current; says what was current before. */
export async function mergeKubeconfig(file: string, entry: KubeconfigEntry, clock: Clock): Promise<{ previous: string }> {
  return changeKubeconfig(file, clock, (config) => {
    const previous = config['current-context']
    putEntry(config, entry)
    config['current-context'] = entry.name
    return { previous: previous === entry.name ? '' : previous }
  })
}

/** Renews the certificates of our entry where it still stands; whatever the user changed or added stays. */
export async function refreshKubeconfig(file: string, entry: KubeconfigEntry, clock: Clock): Promise<void> {
  const { cluster, user } = namedParts(entry)
  const staleIn = (config: Kubeconfig) =>
    [
      { found: config.clusters.find(({ name }) => name === entry.name), part: 'cluster', fresh: cluster.cluster as object },
      { found: config.users.find(({ name }) => name === entry.name), part: 'user', fresh: user.user as object },
    ].flatMap(({ found, part, fresh }) => {
      const renewed = { ...(found?.[part] as object | undefined), ...fresh }
      return found === undefined || isDeepStrictEqual(found[part], renewed) ? [] : [{ found, part, renewed }]
    })
  if (!(await exists(file)) || staleIn(await readKubeconfig(file)).length === 0) return
  await changeKubeconfig(file, clock, (config) => {
    for (const { found, part, renewed } of staleIn(config)) found[part] = renewed
  })
}

/** Takes our entries out; if we were current, what was before us is current again, when it is still there. */
export async function removeFromKubeconfig(file: string, name: string, previous: string, clock: Clock): Promise<boolean> {
  if (!(await exists(file))) return false
  return changeKubeconfig(file, clock, (config) => {
    const had = config.contexts.some((context) => context.name === name) || config.clusters.some((cluster) => cluster.name === name)
    for (const list of [config.clusters, config.users, config.contexts]) {
      const at = list.findIndex((item) => item.name === name)
      if (at >= 0) list.splice(at, 1)
    }
    if (config['current-context'] === name) config['current-context'] = config.contexts.some((context) => context.name === previous) ? previous : ''
    return had
  })
}

/** The contexts of a file that were merged into it for clusters whose directories are gone. */
export async function goneContexts(file: string, isGone: (directory: string) => Promise<boolean>): Promise<string[]> {
  if (!(await exists(file))) return []
  const { contexts } = await readKubeconfig(file)
  const gone = await Promise.all(
    contexts.map(async (context) => {
      const directory = directoryOf(context)
      return directory !== undefined && (await isGone(directory)) ? [context.name] : []
    }),
  )
  return gone.flat()
}

/** Undefined for an entry that is not as it was merged. */
function directoryOf({ name, context }: Named): string | undefined {
  const { cluster, user, extensions } = Object(context) as { cluster?: unknown; user?: unknown; extensions?: unknown }
  if (cluster !== name || user !== name || !Array.isArray(extensions)) return undefined
  const { extension } = Object(extensions.find((one) => Object(one).name === extensionName)) as { extension?: unknown }
  const { directory } = Object(extension) as { directory?: unknown }
  return typeof directory === 'string' && name === contextName(path.basename(directory)) ? directory : undefined
}

/** A whole kubeconfig with one entry, as text. */
export function kubeconfigText({ directory: _, ...entry }: KubeconfigEntry): string {
  const config = empty()
  putEntry(config, entry)
  config['current-context'] = entry.name
  return toYaml(config)
}

function namedParts({ name, server, ca, clientCert, clientKey, directory }: KubeconfigEntry): Record<'cluster' | 'user' | 'context', Named> {
  return {
    cluster: { name, cluster: { server, 'certificate-authority-data': base64(ca) } },
    user: { name, user: { 'client-certificate-data': base64(clientCert), 'client-key-data': base64(clientKey) } },
    context: {
      name,
      context: { cluster: name, user: name, ...(directory === undefined ? {} : { extensions: [{ name: extensionName, extension: { directory } }] }) },
    },
  }
}

function putEntry(config: Kubeconfig, entry: KubeconfigEntry): void {
  const { cluster, user, context } = namedParts(entry)
  put(config.clusters, cluster)
  put(config.users, user)
  put(config.contexts, context)
}

/** Fails now if mergeKubeconfig() would fail later. @throws CommandError that names the file and the ways out */
export async function checkKubeconfig(file: string, clock: Clock): Promise<void> {
  try {
    await locked(file, clock, () => readKubeconfig(file))
  } catch (error) {
    throw asCommandError(error, 'name another kubeconfig with --kubeconfig, or change none with --no-kubeconfig')
  }
}

async function changeKubeconfig<T>(file: string, clock: Clock, change: (config: Kubeconfig) => T): Promise<T> {
  return locked(file, clock, async () => {
    const config = await readKubeconfig(file)
    const result = change(config)
    // A link stays a link: the file that it points to is replaced.
    await writeFileAtomic(await fs.realpath(file).catch(() => file), toYaml(config), 0o600)
    return result
  })
}

async function locked<T>(file: string, clock: Clock, work: () => Promise<T>): Promise<T> {
  await makeDirectory(path.dirname(file), 0o750)
  const lock = `${file}.lock`
  const refuse = (pid: number | undefined) =>
    new CommandError('conflict', `${lock} is held by ${pid === undefined ? 'another program' : `process ${pid}`}`, { hint: `if none runs, remove ${lock}` })
  return withLockFile(lock, { clock, timeoutMs: lockTimeoutMs, refuse }, work)
}

async function readKubeconfig(file: string): Promise<Kubeconfig> {
  const text = await fs.readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  if (text.trim() === '') return empty()
  let parsed: unknown
  try {
    parsed = parseYaml(text)
  } catch (error) {
    throw new CommandError('conflict', `${file} is no valid kubeconfig: ${(error as Error).message}`, {
      hint: 'repair it, or name another one with --kubeconfig',
    })
  }
  if (typeof parsed !== 'object' || parsed === null)
    throw new CommandError('conflict', `${file} is no kubeconfig`, { hint: 'name another one with --kubeconfig' })
  const config = parsed as Record<string, unknown>
  const list = (name: string) => (Array.isArray(config[name]) ? (config[name] as Named[]) : [])
  return { ...config, clusters: list('clusters'), users: list('users'), contexts: list('contexts'), 'current-context': String(config['current-context'] ?? '') }
}

function empty(): Kubeconfig {
  return { apiVersion: 'v1', kind: 'Config', preferences: {}, clusters: [], users: [], contexts: [], 'current-context': '' }
}

function put(list: Named[], item: Named): void {
  const at = list.findIndex((existing) => existing.name === item.name)
  if (at >= 0) list[at] = item
  else list.push(item)
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
