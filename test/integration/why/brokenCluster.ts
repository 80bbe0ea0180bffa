/** A simulated cluster in which broken set-ups are made, each in a namespace of its own. One of its nodes is down. */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { KubeList, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { pathOf } from '#cli/hops/manifest'
import { createReader } from '#cli/net/reader'
import { type Kind, kindNamed, listableKinds, nameOf } from '#cli/past/objects'
import type { ApiRequest } from '#client/transport'
import { gatewayDefinitionObjects } from '#main/layouts/ingress/gatewayApi'
import { startCluster, type TestCluster } from '#testing/cluster'
import type { Answer } from '#why/answer'
import { explainObject } from '#why/explainObject'
import { type Broken, objectsOf, type Step } from './broken.ts'

const merge = 'application/merge-patch+json'

const shared = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: shared}
spec: {controller: example.com/ingress}
`

export class BrokenCluster {
  readonly #cluster: TestCluster
  #made = 0
  #kinds: readonly Kind[] = []

  private constructor(cluster: TestCluster) {
    this.#cluster = cluster
  }

  static async start(): Promise<BrokenCluster> {
    const cluster = await startCluster({ nodes: ['n1', 'n2', 'down'] })
    const made = new BrokenCluster(cluster)
    for (const object of [...gatewayDefinitionObjects(), ...objectsOf(shared)]) await made.#create(object as KubeObject, 'default')
    cluster.node('down').crash()
    await cluster.until(async () => {
      const { status } = (await made.#request({ method: 'GET', path: '/api/v1/nodes/down' })) as Node
      return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'Unknown')
    })
    return made
  }

  close(): Promise<void> {
    return this.#cluster.close()
  }

  /** Makes the set-up, and lets time pass until its answer is as wanted; after ten minutes the answer as it is. */
  async explained(broken: Broken): Promise<Answer> {
    const namespace = `b${++this.#made}`
    await this.#create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, namespace)
    await this.#cluster.until(() => this.#exists(`serviceaccounts/default`, namespace))
    for (const object of objectsOf(broken.given.replaceAll('{ns}', namespace))) await this.#cluster.until(() => this.#created(object, namespace))
    for (const step of broken.steps ?? []) await this.#cluster.until(() => this.#taken(step, namespace))
    let last: Answer | undefined
    const isAsWanted = async () => {
      last = await this.#explain(broken.ask, namespace)
      const [first] = last?.causes ?? []
      return first && broken.cause.test(first.text) && broken.evidence.test(first.evidence) && broken.next.test(first.next ?? '') ? last : undefined
    }
    try {
      return await this.#cluster.until(isAsWanted)
    } catch (error) {
      if (!last) throw error
      return last
    }
  }

  async #explain(text: string, namespace: string): Promise<Answer | undefined> {
    const { path, kind } = await this.#placeOf(text, namespace)
    const reader = createReader(this.#cluster.client.transport)
    const { found } = await reader.get<KubeObject>(path)
    return found && explainObject(kind, found, reader)
  }

  async #placeOf(text: string, namespace: string) {
    const [resource = '', name = ''] = text.split('/')
    const kind = kindNamed(await this.#kindsWith((one) => resource === nameOf(one)), resource)
    if (name !== '{first}') return { kind, path: pathOf(kind, namespace, name) }
    const list = (await this.#request({ method: 'GET', path: pathOf(kind, namespace, '').slice(0, -1) })) as KubeList<KubeObject>
    return { kind, path: pathOf(kind, namespace, list.items[0]?.metadata.name ?? '') }
  }

  async #exists(text: string, namespace: string): Promise<KubeObject | undefined> {
    const { path } = await this.#placeOf(text, namespace)
    return (await createReader(this.#cluster.client.transport).get<KubeObject>(path)).found as KubeObject | undefined
  }

  /** Undefined while its kind is not served. */
  async #created(object: KubeObject, namespace: string): Promise<KubeObject | undefined> {
    try {
      return await this.#create(await this.#withUids(object, namespace), namespace)
    } catch (error) {
      if (isStatus(error, 'NotFound') || error instanceof UnknownKind) return undefined
      throw error
    }
  }

  async #withUids(object: KubeObject, namespace: string): Promise<KubeObject> {
    const text = JSON.stringify(object)
    const named = /\{uid ([^}]+)\}/.exec(text)
    if (!named?.[1]) return object
    const found = await this.#exists(named[1], namespace)
    return JSON.parse(text.replaceAll(named[0], found?.metadata.uid ?? ''))
  }

  async #create(object: KubeObject, namespace: string): Promise<KubeObject> {
    const isOf = (one: Kind) => one.kind === object.kind && `${one.group && `${one.group}/`}${one.version}` === object.apiVersion
    const kind = (await this.#kindsWith(isOf)).find(isOf)
    if (!kind) throw new UnknownKind(object.kind)
    const path = pathOf(kind, namespace, '').slice(0, -1)
    if (kind.resource === 'namespaces' && object.metadata.name === namespace && (await this.#exists(`namespaces/${namespace}`, namespace))) {
      return (await this.#request({ method: 'PATCH', path: `${path}/${namespace}`, body: object, contentType: merge })) as KubeObject
    }
    return (await this.#request({ method: 'POST', path, body: object })) as KubeObject
  }

  async #taken(step: Step, namespace: string): Promise<boolean> {
    const [text] = Object.values(step) as [string]
    if (!text.endsWith('{first}') && !(await this.#exists(text, namespace))) return false
    const { path } = await this.#placeOf(text, namespace)
    if (path.endsWith('/')) return false
    if ('running' in step) return ((await this.#request({ method: 'GET', path })) as Pod).status?.phase === 'Running'
    if ('delete' in step) {
      const query = { propagationPolicy: step.foreground ? 'Foreground' : 'Background' }
      await this.#request({ method: 'DELETE', path, query })
      return true
    }
    const isApproval = path.includes('/certificatesigningrequests/')
    if ('status' in step)
      await this.#request({ method: 'PATCH', path: `${path}/${isApproval ? 'approval' : 'status'}`, body: { status: step.body }, contentType: merge })
    else await this.#request({ method: 'PATCH', path, body: step.body, contentType: merge })
    return true
  }

  /** The kinds of the cluster, asked again while the wanted one is not among them. */
  async #kindsWith(isWanted: (kind: Kind) => boolean): Promise<readonly Kind[]> {
    if (!this.#kinds.some(isWanted)) this.#kinds = await listableKinds(this.#cluster.client.transport)
    return this.#kinds
  }

  async #request(request: ApiRequest): Promise<unknown> {
    return (await this.#cluster.client.transport.request(request)).body
  }
}

class UnknownKind extends Error {}
