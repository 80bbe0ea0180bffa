/** Sends one field's values, largest first, by every way that writes an object, and measures the longest turn of the server's event loop meanwhile. */
import { type Answer, type BudgetCluster, budgetNamespace, type Role } from './clusterProcess.ts'
import type { Ladder } from './edges.ts'
import { type BudgetField, type JsonObject, type Kind, leastObject, withField } from './fields.ts'

export interface Measurement {
  readonly field: string
  readonly ladder: string
  /** The step of the ladder that was accepted, counted from the largest; undefined: none. */
  readonly accepted: number | undefined
  /** The longest turn of all, and what was being done. */
  readonly turnMs: number
  readonly during: string
  readonly requests: number
  readonly why: string
}

const requestLimit = 3 * 1024 * 1024
const longestTurnMs = 250
/** What fails is done again: a turn that is long by chance is not long three times. */
const attempts = 3
/** For so long turns are measured while controllers, scheduler and kubelets begin with what was created; a number may make them work for longer. */
const reactionMs = 60
const numberReactionMs = 500

export interface Target {
  readonly kind: Kind
  readonly role: Role
  readonly collection: string
}

/** The role with the fewest rights that may create the kind. */
export async function targetOf(cluster: BudgetCluster, kind: Kind): Promise<Target> {
  const base = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
  const collection = `${base}${kind.isNamespaced ? `/namespaces/${budgetNamespace}` : ''}/${kind.resource}`
  for (const role of ['edit', 'admin'] as const) {
    const { status } = await cluster.send(role, 'POST', `${collection}?dryRun=All`, leastObject(kind, budgetNamespace))
    if (status !== 403) return { kind, role, collection }
  }
  return { kind, role: 'root', collection }
}

/** @returns the measurement with the shortest longest turn, of as many attempts as it takes to be within the budget */
export async function measure(cluster: BudgetCluster, target: Target, field: BudgetField, ladder: Ladder): Promise<Measurement> {
  let best = await new Attempt(cluster, target, field, ladder).run()
  for (let again = 1; again < attempts && best.turnMs > longestTurnMs; again++) {
    const next = await new Attempt(cluster, target, field, ladder).run()
    if (next.turnMs < best.turnMs) best = next
  }
  return best
}

let serial = 0

class Attempt {
  readonly #cluster: BudgetCluster
  readonly #target: Target
  readonly #field: BudgetField
  readonly #ladder: Ladder
  #turnMs = 0
  #during = ''
  #requests = 0
  #why = ''

  constructor(cluster: BudgetCluster, target: Target, field: BudgetField, ladder: Ladder) {
    this.#cluster = cluster
    this.#target = target
    this.#field = field
    this.#ladder = ladder
  }

  async run(): Promise<Measurement> {
    const { kind } = this.#target
    await this.#cluster.longestTurn()
    let accepted: number | undefined
    for (const [index, step] of this.#ladder.steps.entries()) {
      const object = withField(leastObject(kind, budgetNamespace), this.#field, step())
      const text = JSON.stringify(withName(object, this.#field))
      if (Buffer.byteLength(text) > requestLimit) continue
      if (index === 0) await this.#send(`dry run of step ${index}`, 'POST', `${this.#target.collection}?dryRun=All`, text)
      const { status, text: why } = await this.#send(`create of step ${index}`, 'POST', this.#target.collection, text)
      if (status < 300) {
        accepted = index
        await this.#more(object)
        break
      }
      this.#why ||= `${status} ${why.slice(0, 300)}`
    }
    const { resource } = kind
    return {
      field: `${resource} ${this.#field.name}`,
      ladder: this.#ladder.name,
      accepted,
      turnMs: Math.round(this.#turnMs),
      during: this.#during,
      requests: this.#requests,
      why: this.#why,
    }
  }

  /** What can be done to an object that is there; at the end it is gone. */
  async #more(object: JsonObject): Promise<void> {
    const { kind, collection } = this.#target
    if (!kind.verbs.includes('delete')) return
    const metadata = object.metadata as { name: string; labels?: object }
    const path = `${collection}/${metadata.name}`
    await this.#pause('reaction to create', typeof this.#ladder.steps.at(-1)?.() === 'number' ? numberReactionMs : reactionMs)
    const changed = JSON.stringify({ ...object, metadata: { ...metadata, labels: { ...metadata.labels, changed: 'yes' } } })
    if (kind.verbs.includes('update')) await this.#send('update', 'PUT', path, changed)
    await this.#send('apply', 'PATCH', `${path}?fieldManager=other&force=true`, changed, 'application/apply-patch+yaml')
    await this.#send('get', 'GET', path)
    await this.#pause('reaction to update', reactionMs)
    await this.#send('finalizers', 'PATCH', path, '{"metadata":{"finalizers":null}}', 'application/merge-patch+json')
    const gone = await this.#send('delete', 'DELETE', path, '{"gracePeriodSeconds":0,"propagationPolicy":"Background"}')
    if (gone.status >= 300 && gone.status !== 404) this.#why ||= `${gone.status} ${gone.text}`
    await this.#pause('reaction to delete', reactionMs)
    await this.#send('finalizers', 'PATCH', path, '{"metadata":{"finalizers":null}}', 'application/merge-patch+json')
  }

  async #send(during: string, method: string, path: string, text?: string, contentType?: string): Promise<Answer> {
    this.#requests++
    const answer = await this.#cluster.send(this.#target.role, method, path, text, contentType)
    await this.#note(during)
    return answer
  }

  async #pause(during: string, ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms))
    await this.#note(during)
  }

  async #note(during: string): Promise<void> {
    const turnMs = await this.#cluster.longestTurn()
    if (turnMs <= this.#turnMs) return
    this.#turnMs = turnMs
    this.#during = during
  }
}

/** Gives the object a name that no other has, unless rules of its kind fix the name. */
function withName(object: JsonObject, field: BudgetField): JsonObject {
  const metadata = object.metadata as { name: string }
  if (metadata.name === 'life-of-one') metadata.name = `${field.kind.resource.slice(0, 20)}-${++serial}`
  return object
}
