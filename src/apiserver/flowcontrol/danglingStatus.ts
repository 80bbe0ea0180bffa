/**
 * Sets the condition Dangling of each FlowSchema, by whether its priority level exists (L3). It reads the watch cache and writes only differences; one
 * schema is written six times a minute at most, so that servers which disagree do not overwrite each other at full speed.
 * Upstream: apf_controller.go presyncFlowSchemaStatus, digestConfigObjects.
 */
import type { FlowSchema, FlowSchemaCondition } from '#api/gen/types/flowcontrol.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import { formatTime } from '#base/time'
import type { Transport } from '#client/transport'

const group = 'flowcontrol.apiserver.k8s.io'
const query = { fieldManager: 'api-priority-and-fairness-config-consumer-v1', force: 'true' }
const minuteMs = 60_000
const mostUpdatesPerMinute = 6

export interface DanglingStatusDeps {
  readonly clock: Clock
  readonly random: Random
  readonly transport: Transport
}

export interface DanglingStatus {
  /**
   * Corrects all of them.
   * @param exists whether a priority level does
   * @returns after how many milliseconds to sync again, if some were written too often; else undefined
   * @throws Status of a write that fails
   */
  sync(schemas: readonly Frozen<FlowSchema>[], exists: (priorityLevel: string) => boolean, signal: AbortSignal): Promise<number | undefined>
}

export function createDanglingStatus({ clock, random, transport }: DanglingStatusDeps): DanglingStatus {
  const writtenAt = new Map<string, readonly number[]>()
  const mayWrite = (name: string): boolean => {
    const recent = (writtenAt.get(name) ?? []).filter((atMs) => clock.monotonicMs() - atMs <= minuteMs)
    if (recent.length >= mostUpdatesPerMinute) return false
    writtenAt.set(name, [...recent, clock.monotonicMs()])
    return true
  }
  const write = async (name: string, condition: FlowSchemaCondition, signal: AbortSignal) => {
    const body = { apiVersion: `${group}/v1`, kind: 'FlowSchema', metadata: { name }, status: { conditions: [condition] } }
    const path = `/apis/${group}/v1/flowschemas/${name}/status`
    const contentType = 'application/apply-patch+yaml'
    await transport.request({ method: 'PATCH', path, query, contentType, body: JSON.stringify(body) }, signal).catch((error: unknown) => {
      // It was deleted in the meantime.
      if (!isStatus(error, 'NotFound')) throw error
    })
  }
  return {
    async sync(schemas, exists, signal) {
      const names = new Set(schemas.map(({ metadata }) => metadata.name ?? ''))
      for (const name of writtenAt.keys()) if (!names.has(name)) writtenAt.delete(name)
      const wrong = schemas.flatMap((schema) => {
        const wanted = wantedCondition(schema.spec.priorityLevelConfiguration.name, exists)
        return isAsWanted(schema, wanted) ? [] : [{ name: schema.metadata.name ?? '', wanted }]
      })
      const due = wrong.filter(({ name }) => mayWrite(name))
      const lastTransitionTime = formatTime(clock.now())
      await Promise.all(due.map(({ name, wanted }) => write(name, { ...wanted, lastTransitionTime }, signal)))
      return due.length < wrong.length ? (30 + random.int(45)) * 1000 : undefined
    },
  }
}

function wantedCondition(level: string, exists: (priorityLevel: string) => boolean) {
  const found = exists(level)
  const what = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`
  return {
    type: 'Dangling',
    status: found ? 'False' : 'True',
    reason: found ? 'Found' : 'NotFound',
    message: found ? `${what} and it exists` : `${what} but there is no such object`,
  }
}

function isAsWanted({ status }: Frozen<FlowSchema>, wanted: ReturnType<typeof wantedCondition>): boolean {
  const conditions = status?.conditions as readonly Frozen<FlowSchemaCondition & { type: string }>[] | undefined
  const found = findCondition(conditions, wanted.type)
  return found?.status === wanted.status && found.reason === wanted.reason && found.message === wanted.message
}
