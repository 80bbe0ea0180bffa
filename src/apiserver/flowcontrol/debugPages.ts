/**
 * The tables under /debug/api_priority_and_fairness (L3), with upstream's columns and layout: cells end with a comma and are padded to the
 * width of their column. Upstream: apf_controller_debug.go.
 */

import { formatDuration } from '#api/machinery/duration'
import { groupVersion } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { greatest } from '#base/extremes'
import { type Answer, textAnswer } from '../core/answer.ts'
import type { RequestInfo, ServerRequest } from '../core/request.ts'
import type { FlowRequest, Queue } from './flowRequest.ts'
import type { PriorityLevel } from './priorityLevel.ts'

const folder = '/debug/api_priority_and_fairness/'
const leastWidth = 8

/** Undefined: it is not one of these pages. */
export function debugPage(request: ServerRequest, levels: ReadonlyMap<string, PriorityLevel>, clock: Clock): Answer | undefined {
  if (!request.path.startsWith(folder)) return undefined
  const sorted = [...levels.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  switch (request.path.slice(folder.length)) {
    case 'dump_priority_levels':
      return textAnswer(200, table([levelColumns, ...sorted.map(levelRow)]))
    case 'dump_queues':
      return textAnswer(200, table([queueColumns, ...sorted.flatMap((level) => level.queueSet.queues.map((queue) => queueRow(level, queue)))]))
    case 'dump_requests':
      return textAnswer(200, table(requestRows(sorted, (request.query.get('includeRequestDetails') ?? '') !== '', clock)))
    default:
      return undefined
  }
}

const levelColumns = [
  ...['PriorityLevelName', 'ActiveQueues', 'IsIdle', 'IsQuiescing', 'WaitingRequests', 'ExecutingRequests'],
  ...['DispatchedRequests', 'RejectedRequests', 'TimedoutRequests', 'CancelledRequests'],
]

function levelRow({ name, queueSet, quiescing }: PriorityLevel): readonly string[] {
  const { waiting, executing, dispatched, rejected, cancelled } = queueSet.counts
  const active = queueSet.queues.filter((queue) => queue.waiting.length > 0).length
  // Upstream counts requests that waited too long as cancelled.
  return [name, active, queueSet.isIdle, quiescing, waiting, executing, dispatched, rejected, 0, cancelled].map(String)
}

const queueColumns = [
  ...['PriorityLevelName', 'Index', 'PendingRequests', 'ExecutingRequests', 'SeatsInUse', 'NextDispatchR'],
  ...['InitialSeatsSum', 'MaxSeatsSum', 'TotalWorkSum'],
]

function queueRow({ name }: PriorityLevel, queue: Queue): readonly string[] {
  let initialSeats = 0
  for (const request of queue.waiting) initialSeats += request.initialSeats
  const { index, waiting, executing, seatsInUse, nextDispatchR, seatsWaiting, workWaiting } = queue
  const counts = [index, waiting.length, executing.length, seatsInUse].map(String)
  return [name, ...counts, seatSeconds(nextDispatchR), String(initialSeats), String(seatsWaiting), seatSeconds(workWaiting)]
}

function seatSeconds(value: number): string {
  return `${value.toFixed(8)}ss`
}

const requestColumns = [
  ...['PriorityLevelName', 'FlowSchemaName', 'QueueIndex', 'RequestIndexInQueue', 'FlowDistingsher', 'ArriveTime', 'InitialSeats'],
  ...['FinalSeats', 'AdditionalLatency', 'StartTime'],
]
const detailColumns = ['UserName', 'Verb', 'APIPath', 'Namespace', 'Name', 'APIVersion', 'Resource', 'SubResource']

function requestRows(levels: readonly PriorityLevel[], withDetails: boolean, clock: Clock): (readonly string[])[] {
  const startedMs = clock.now() - clock.monotonicMs()
  const rows: (readonly string[])[] = [withDetails ? [...requestColumns, ...detailColumns] : requestColumns]
  for (const { name, queueSet } of levels) {
    const add = (request: FlowRequest, queueIndex: number, index: number) => {
      const row = [name, ...requestRow(request, queueIndex, index, startedMs)]
      rows.push(withDetails ? [...row, ...detailsOf(request.request)] : row)
    }
    for (const queue of queueSet.queues) {
      let index = 0
      for (const request of queue.waiting) add(request, queue.index, index++)
      for (const request of queue.executing) add(request, queue.index, -1)
    }
    for (const request of queueSet.queueless) add(request, -1, -1)
  }
  return rows
}

function requestRow(request: FlowRequest, queueIndex: number, index: number, startedMs: number): string[] {
  const { flow, arrivalMs, initialSeats, finalSeats, additionalLatencyMs, startMs } = request
  return [
    ...[flow.flowSchema, String(queueIndex), String(index), flow.distinguisher, timeText(startedMs + arrivalMs), String(initialSeats), String(finalSeats)],
    ...[formatDuration(additionalLatencyMs), startMs < 0 ? '0001-01-01T00:00:00Z' : timeText(startedMs + startMs)],
  ]
}

function detailsOf({ user, info }: ServerRequest): string[] {
  const { verb, path, namespace, name, apiGroup, apiVersion, resource, subresource } = info as RequestInfo
  return [user?.name ?? '', verb, path, namespace, name, groupVersion({ group: apiGroup, version: apiVersion }), resource, subresource]
}

/** As Go's RFC3339Nano: no trailing zeros. */
function timeText(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.?0*Z$/, 'Z')
}

/** As Go's tabwriter: a space behind the widest cell of each column; the last one is not padded. */
function table(rows: readonly (readonly string[])[]): string {
  const count = rows[0]?.length ?? 0
  const widths = Array.from({ length: count - 1 }, (_, column) =>
    greatest(
      rows.map((row) => (row[column] ?? '').length + 2),
      leastWidth,
    ),
  )
  return rows.map((row) => `${row.map((cell, column) => (column < count - 1 ? `${cell},`.padEnd(widths[column] as number) : cell)).join('')}\n`).join('')
}
