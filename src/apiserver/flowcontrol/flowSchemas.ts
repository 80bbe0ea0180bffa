/**
 * Finds the flow that a request belongs to (L3). The rules that include a user are computed once per user and configuration; per request only
 * verbs and resources of a few rules are compared, and a flow's queues are dealt once.
 * Upstream: apf_controller.go startRequest.
 */
import type { FlowSchema, PolicyRulesWithSubjects } from '#api/gen/types/flowcontrol.v1'
import type { Frozen } from '#api/machinery/meta'
import { LruCache } from '#base/lruCache'
import type { RequestInfo, UserInfo } from '../core/request.ts'
import type { SchemaMetrics } from './flowMetrics.ts'
import type { Flow } from './flowRequest.ts'
import type { PriorityLevel } from './priorityLevel.ts'
import { matchesARule, matchesASubject } from './rules.ts'
import { dealHand, hashFlow } from './shuffleSharding.ts'

/** A flow schema in one configuration. */
interface Schema {
  readonly object: Frozen<FlowSchema>
  readonly level: PriorityLevel
  readonly metrics: SchemaMetrics
  /** Undefined: all of its requests are one flow. */
  readonly distinguisher: 'ByUser' | 'ByNamespace' | undefined
  readonly flows: LruCache<string, Flow>
}

/** A schema with its rules whose subjects include the user. */
interface Candidate {
  readonly schema: Schema
  readonly rules: readonly Frozen<PolicyRulesWithSubjects>[]
  /** The user's flow; unset if the schema distinguishes namespaces. */
  flow: Flow | undefined
}

export interface Classified {
  readonly level: PriorityLevel
  readonly flow: Flow
}

const mostUsers = 4096
const mostFlowsOfSchema = 1024

export class FlowSchemas {
  readonly #schemas: readonly Schema[]
  readonly #fallback: readonly Candidate[]
  readonly #byUser = new WeakMap<UserInfo, readonly Candidate[]>()
  /** The same by name and groups: authenticators may make a new object for each request. */
  readonly #byKey = new LruCache<string, readonly Candidate[]>(mostUsers)

  /** @param schemas in the order of matching, each with its level; the last one is catch-all */
  constructor(schemas: readonly { readonly object: Frozen<FlowSchema>; readonly level: PriorityLevel; readonly metrics: SchemaMetrics }[]) {
    this.#schemas = schemas.map((one) => ({ ...one, distinguisher: distinguisherOf(one.object, one.level), flows: new LruCache(mostFlowsOfSchema) }))
    // Users without any group match no schema and fall back to catch-all.
    this.#fallback = this.#schemas.filter(({ object }) => object.metadata.name === 'catch-all').map((schema) => ({ schema, rules: [], flow: undefined }))
  }

  classify(user: UserInfo, info: RequestInfo): Classified {
    for (const candidate of this.#candidates(user)) {
      for (const rule of candidate.rules) if (matchesARule(rule, info)) return this.#classified(candidate, user, info)
    }
    return this.#classified(this.#fallback[0] as Candidate, user, info)
  }

  #candidates(user: UserInfo): readonly Candidate[] {
    const known = this.#byUser.get(user)
    if (known) return known
    const key = `${user.name}\n${user.groups.join('\n')}`
    let candidates = this.#byKey.get(key)
    if (!candidates) {
      candidates = this.#schemas.flatMap((schema) => {
        const rules = (schema.object.spec.rules ?? []).filter(({ subjects }) => matchesASubject(user, subjects))
        return rules.length > 0 ? [{ schema, rules, flow: undefined }] : []
      })
      this.#byKey.set(key, candidates)
    }
    this.#byUser.set(user, candidates)
    return candidates
  }

  #classified(candidate: Candidate, user: UserInfo, info: RequestInfo): Classified {
    const { schema } = candidate
    if (schema.distinguisher === 'ByNamespace') return { level: schema.level, flow: flowOf(schema, info.namespace) }
    // The fallback candidate has no user.
    if (candidate.rules.length === 0) return { level: schema.level, flow: flowOf(schema, schema.distinguisher ? user.name : '') }
    candidate.flow ??= flowOf(schema, schema.distinguisher ? user.name : '')
    return { level: schema.level, flow: candidate.flow }
  }
}

/** The schema's distinguisher; ignored for a level with one queue, which cannot separate flows. */
function distinguisherOf({ spec }: Frozen<FlowSchema>, level: PriorityLevel): Schema['distinguisher'] {
  return level.queuing.queues > 1 ? (spec.distinguisherMethod?.type as Schema['distinguisher']) : undefined
}

function flowOf({ flows, object, level, metrics }: Schema, distinguisher: string): Flow {
  let flow = flows.get(distinguisher)
  if (!flow) {
    const flowSchema = object.metadata.name ?? ''
    const { queues, handSize } = level.queuing
    const hash = queues > 1 ? hashFlow(flowSchema, distinguisher) : 0n
    flow = {
      flowSchema,
      distinguisher,
      hand: queues > 0 ? dealHand(hash, queues, handSize) : [],
      metrics,
      lately: { seats: 0 },
      dropped: level.dropped,
      flowSchemaUid: object.metadata.uid ?? '',
      priorityLevelUid: level.object.metadata.uid ?? '',
    }
    flows.set(distinguisher, flow)
  }
  return flow
}
