/** What the checks of labs see of the cluster (L4): objects of the lab's namespace, the learner's answers, and what the server would say to a write. */
import { createHash } from 'node:crypto'
import type { ResourceAttributes } from '#api/gen/types/authorization.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { namespaces, subjectAccessReviews } from '#client/builtIn'
import type { Client, NewObject, Resource } from '#client/client'
import { type Outcome, passes } from './outcome.ts'

export class Look {
  readonly client: Client
  readonly namespace: string

  constructor(client: Client, namespace: string) {
    this.client = client
    this.namespace = namespace
  }

  /** Undefined: there is none. */
  async get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<Frozen<T> | undefined> {
    return this.client
      .of(resource)
      .get({ name, ...(resource.namespaced ? { namespace: this.namespace } : {}) })
      .catch((error) => {
        if (isStatus(error, 'NotFound')) return undefined
        throw error
      })
  }

  async list<T extends KubeObject>(resource: Resource<T>, labelSelector?: string): Promise<readonly Frozen<T>[]> {
    return (await this.client.of(resource).list({ ...(resource.namespaced ? { namespace: this.namespace } : {}), labelSelector })).items as Frozen<T>[]
  }

  /** Creates an object in the lab's namespace. */
  async create<T extends KubeObject>(resource: Resource<T>, object: NewObject<T>): Promise<void> {
    const placed = resource.namespaced ? { ...object, metadata: { ...object.metadata, namespace: this.namespace } } : object
    await this.client.of(resource).create(placed)
  }

  /** Removes an object that is in no namespace; one that is not there is no failure. */
  async remove<T extends KubeObject>(resource: Resource<T>, name: string): Promise<void> {
    await this.client
      .of(resource)
      .delete({ name })
      .catch((error) => {
        if (!isStatus(error, 'NotFound')) throw error
      })
  }

  /** Why the server would refuse the object; undefined when it would admit it. */
  async refusal<T extends KubeObject>(resource: Resource<T>, object: NewObject<T>): Promise<string | undefined> {
    const placed = { ...object, metadata: { ...object.metadata, namespace: this.namespace } }
    try {
      await this.client.of(resource).create(placed, { dryRun: true })
      return undefined
    } catch (error) {
      if (isStatus(error)) return messageOf(error)
      throw error
    }
  }

  /** Annotations of the lab's namespace: what start noted, and the learner's answers. */
  async notes(): Promise<Readonly<Record<string, string>>> {
    return (await this.get(namespaces, this.namespace))?.metadata.annotations ?? {}
  }

  async note(notes: Readonly<Record<string, string>>): Promise<void> {
    await this.client.of(namespaces).patch({ name: this.namespace }, 'merge', { metadata: { annotations: notes } })
  }

  /** Passes when the learner's answer is this one. @param right undefined: the cluster has no answer yet */
  answers(key: string, right: string | undefined): Promise<Outcome> {
    return this.#judged(key, (answer) => answer === right)
  }

  /** As answers, for a right answer that nothing shows but its digest. */
  answersDigest(key: string, digest: string | undefined): Promise<Outcome> {
    return this.#judged(key, (answer) => digestOf(answer) === digest)
  }

  async #judged(key: string, isRight: (answer: string) => boolean): Promise<Outcome> {
    const answer = (await this.notes())[key]
    if (answer === undefined) return passes(false, `there is no answer yet: kubectl annotate namespace ${this.namespace} ${key}=…`)
    return passes(isRight(answer), `the answer "${key}" is ${isRight(answer) ? answer : `not ${answer}`}`)
  }

  async allows(user: string, attributes: ResourceAttributes): Promise<boolean> {
    const review = await this.client.of(subjectAccessReviews).create({ metadata: {}, spec: { user, resourceAttributes: attributes } })
    return (review as { status?: { allowed?: boolean } }).status?.allowed === true
  }
}

export const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)
