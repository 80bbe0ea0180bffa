/**
 * Debian's Prometheus against a cluster, for end-to-end tests: a ServiceAccount with the rights of a monitoring system, a configuration with every page, and
 * questions to the running server. Targets are scraped through the API server, the only address of a local cluster that this host reaches. Debian builds
 * Prometheus without its discovery of Kubernetes.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { freePort } from '#main/localCluster/freePort'
import { eventually, type LocalCluster } from './localCluster.ts'

/** What Prometheus must be allowed to read, as its documentation says. */
const manifests = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'monitoring' } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'prometheus', namespace: 'monitoring' } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'prometheus' },
    rules: [
      { apiGroups: [''], resources: ['nodes', 'services', 'endpoints', 'pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['nodes/metrics', 'nodes/proxy'], verbs: ['get'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['networking.k8s.io'], resources: ['ingresses'], verbs: ['get', 'list', 'watch'] },
      { nonResourceURLs: ['/metrics', '/metrics/*'], verbs: ['get'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'prometheus' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'prometheus' },
    subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace: 'monitoring' }],
  },
]

export interface Access {
  /** `127.0.0.1:PORT` of the API server. */
  readonly host: string
  readonly caFile: string
  readonly tokenFile: string
}

/** Makes the ServiceAccount and its token. */
export async function prometheusAccess(cluster: LocalCluster): Promise<Access> {
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }), ['apply', '-f', '-'])
  const config = JSON.parse(await cluster.must(['config', 'view', '--raw', '-o', 'json'])) as {
    readonly clusters: readonly { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } }[]
  }
  const { server, 'certificate-authority-data': ca } = config.clusters[0]?.cluster ?? { server: '', 'certificate-authority-data': '' }
  const caFile = path.join(cluster.dir, 'prometheus-ca.crt')
  const tokenFile = path.join(cluster.dir, 'prometheus-token')
  fs.writeFileSync(caFile, Buffer.from(ca, 'base64'))
  fs.writeFileSync(tokenFile, await cluster.must(['create', 'token', 'prometheus', '-n', 'monitoring', '--duration', '1h']), { mode: 0o600 })
  return { host: new URL(server).host, caFile, tokenFile }
}

/** Pages of a kubelet, by the job that scrapes them. */
const kubeletJobs = {
  kubelet: '/metrics',
  cadvisor: '/metrics/cadvisor',
  resource: '/metrics/resource',
  probes: '/metrics/probes',
  'kubelet-slis': '/metrics/slis',
}
/** Pages of the API server. */
const serverJobs = { 'kube-apiserver': '/metrics', 'apiserver-slis': '/metrics/slis', 'pod-resources': '/metrics/resources' }

/** A configuration as JSON, which is YAML. @param nodes whose kubelets are scraped */
export function prometheusConfig({ host, caFile, tokenFile }: Access, nodes: readonly string[], more: readonly object[] = []): object {
  const job = (name: string, targets: readonly Readonly<Record<string, string>>[]) => ({
    job_name: name,
    scheme: 'https',
    authorization: { credentials_file: tokenFile },
    tls_config: { ca_file: caFile },
    static_configs: targets.map((labels) => ({ targets: [host], labels })),
  })
  const ofNode = (node: string, page: string) => ({ __metrics_path__: `/api/v1/nodes/${node}/proxy${page}`, instance: node, node })
  return {
    global: { scrape_interval: '5s', scrape_timeout: '5s' },
    scrape_configs: [
      ...Object.entries(serverJobs).map(([name, page]) => job(name, [{ __metrics_path__: page }])),
      ...Object.entries(kubeletJobs).map(([name, page]) =>
        job(
          name,
          nodes.map((node) => ofNode(node, page)),
        ),
      ),
      ...more,
    ],
  }
}

/** The names of the cluster's nodes. */
export async function nodesOf(cluster: LocalCluster): Promise<string[]> {
  return (await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}'])).split(' ')
}

export interface Target {
  readonly labels: Readonly<Record<string, string>>
  readonly health: string
  readonly lastError: string
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [time: number, value: string]
}

export class Prometheus {
  readonly url: string
  readonly #child: ChildProcess
  #log = ''

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
    child.stderr?.on('data', (chunk) => {
      this.#log = (this.#log + chunk).slice(-20_000)
    })
  }

  /** @param directory empty, for its data */
  static async start(directory: string, config: object, flags: readonly string[] = []): Promise<Prometheus> {
    fs.mkdirSync(directory)
    const file = path.join(directory, 'prometheus.yml')
    fs.writeFileSync(file, JSON.stringify(config))
    const address = `127.0.0.1:${await freePort()}`
    const own = [`--config.file=${file}`, `--storage.tsdb.path=${directory}/data`, `--web.listen-address=${address}`, '--log.level=warn']
    const prometheus = new Prometheus(spawn('prometheus', [...own, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] }), `http://${address}`)
    try {
      const ready = () =>
        fetch(`${prometheus.url}/-/ready`).then(
          ({ status }) => status,
          () => 0,
        )
      await eventually('Prometheus is ready', 30_000, ready, (status) => status === 200)
    } catch (error) {
      await prometheus.stop()
      throw new Error(`${String(error)}\n${prometheus.#log}`)
    }
    return prometheus
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill()
    await once(this.#child, 'exit')
  }

  async #ask<T>(api: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
    const response = await fetch(`${this.url}/api/v1/${api}?${new URLSearchParams(query)}`)
    const { status, data, error } = (await response.json()) as { readonly status: string; readonly data: T; readonly error?: string }
    if (status !== 'success') throw new Error(`${api} ${JSON.stringify(query)}: ${error}`)
    return data
  }

  async query(query: string): Promise<readonly Sample[]> {
    return (await this.#ask<{ readonly result: readonly Sample[] }>('query', { query })).result
  }

  /** Label sets of the series that match. */
  series(match: string): Promise<readonly Readonly<Record<string, string>>[]> {
    return this.#ask('series', { 'match[]': match })
  }

  async exemplars(query: string): Promise<readonly Readonly<Record<string, string>>[]> {
    const now = Date.now() / 1000
    const found = await this.#ask<readonly { readonly exemplars: readonly { readonly labels: Record<string, string> }[] }[]>('query_exemplars', {
      query,
      start: String(now - 600),
      end: String(now + 60),
    })
    return found.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels))
  }

  /** Waits until each target of these jobs is up, and each job has one. */
  async untilUp(jobs: readonly string[]): Promise<readonly Target[]> {
    const isUp = (active: readonly Target[]) =>
      active.every(({ health }) => health === 'up') && jobs.every((job) => active.some(({ labels }) => labels.job === job))
    const look = async () => {
      const { activeTargets } = await this.#ask<{ readonly activeTargets: readonly Target[] }>('targets')
      return activeTargets.map(({ labels, health, lastError }) => ({ labels, health, lastError }))
    }
    return eventually(`targets of ${jobs.join(', ')} are up`, 60_000, look, isUp)
  }
}

/** The jobs of {@link prometheusConfig} that scrape something. */
export const scrapingJobs: readonly string[] = [...Object.keys(serverJobs), ...Object.keys(kubeletJobs)]

/** Lines of `promtool check metrics` about a page: `name what is wrong`. @throws Error when the page cannot be parsed */
export function lintMetrics(page: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = execFile('promtool', ['check', 'metrics'], (error, _, stderr) => {
      // 3: the page is right, and has names that Prometheus advises against.
      if (error && error.code !== 3) reject(new Error(`promtool: ${stderr || error.message}`))
      else resolve(stderr.split('\n').filter(Boolean))
    })
    child.stdin?.end(page)
  })
}
