/**
 * GET /skiff/revisions (L3): which revision was the newest at `time` (RFC 3339), when each of `revisions` was made, and since when there is history. A
 * non-resource path, denied to users without a role that names it; objects of a revision are read by lists with resourceVersionMatch=Exact.
 */

import type { RevisionHistory } from '#api/debug/revisions'
import { badRequest } from '#api/machinery/status'
import { formatTime, parseTime } from '#base/time'
import type { Page } from '../core/page.ts'
import { type HistoryDeps, historyStatus } from '../registry/history.ts'

const path = '/skiff/revisions'
export const mostRevisions = 500

export function revisionsPage(deps: Pick<HistoryDeps, 'store' | 'times'>): Page {
  return {
    prefix: path,
    async handle(request) {
      if (request.path !== path) return undefined
      return { type: 'value', status: 200, value: await historyOf(deps, request.query) }
    },
  }
}

async function historyOf(deps: Pick<HistoryDeps, 'store' | 'times'>, query: URLSearchParams): Promise<RevisionHistory> {
  const time = query.get('time')
  const timeMs = time === null ? undefined : parseTime(time)
  if (time !== null && timeMs === undefined) throw badRequest(`time: expected a time such as 2026-01-31T14:03:00Z`)
  const revisions = (query.get('revisions') ?? '').split(',').filter((one) => one !== '')
  if (revisions.length > mostRevisions) throw badRequest(`revisions: at most ${mostRevisions}`)
  if (!revisions.every((one) => /^\d{1,15}$/.test(one))) throw badRequest('revisions: expected whole numbers with commas between them')
  const { oldestMs, revision, oldestRevision, bytes, raft } = await historyStatus(deps)
  const at = timeMs === undefined ? undefined : deps.times.at(timeMs)
  return {
    revision,
    oldestRevision,
    bytes,
    ...(raft ? { raft } : {}),
    ...(oldestMs === undefined ? {} : { oldestTime: formatTime(oldestMs) }),
    ...(at === undefined ? {} : { at: Math.max(at, oldestRevision) }),
    ...(revisions.length === 0 ? {} : { times: Object.fromEntries(revisions.map((one) => [one, timeOf(deps, Number(one))])) }),
  }
}

function timeOf({ times }: Pick<HistoryDeps, 'times'>, revision: number): string | null {
  const atMs = times.of(revision)
  return atMs === undefined ? null : formatTime(atMs)
}
