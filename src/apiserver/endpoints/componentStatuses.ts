/**
 * componentstatuses (L3): deprecated since v1.19, still listed by `kubectl get cs`. The composition root supplies the health checks.
 * Upstream: pkg/registry/core/componentstatus.
 */
import type { ComponentStatus } from '#api/gen/types/core.v1'
import { strategyFor } from '#api/kinds/index'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import { toTable } from '#api/tables/table'
import type { Answer } from '../core/answer.ts'
import { encodingOf, negotiate } from '../core/negotiate.ts'
import type { RequestInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { methodNotAllowed } from './router.ts'

export interface ComponentHealth {
  readonly name: string
  /** Undefined: healthy. */
  readonly problem?: string | undefined
}

export function componentStatusHandler(components: () => readonly ComponentHealth[], nowMs: () => number): Handler {
  return (request): Answer => {
    const info = request.info as RequestInfo
    const all = components().map(statusOf)
    const form = negotiate(request, ['Table'])
    const metadata = { resourceVersion: '' }
    const table = (objects: readonly ComponentStatus[]) =>
      toTable(objects as unknown as readonly Frozen<KubeObject>[], strategyFor('', 'ComponentStatus')?.columns ?? [], nowMs(), 'Metadata', metadata)
    if (info.verb === 'list') {
      const list = { kind: 'ComponentStatusList', apiVersion: 'v1', metadata, items: all }
      return { type: 'value', status: 200, value: form.as === 'Table' ? table(all) : list, ...encodingOf(form) }
    }
    if (info.verb !== 'get') throw methodNotAllowed()
    const one = all.find((status) => status.metadata.name === info.name)
    if (!one) throw notFound({ group: '', resource: 'componentstatuses' }, info.name)
    return { type: 'value', status: 200, value: form.as === 'Table' ? table([one]) : one, ...encodingOf(form) }
  }
}

function statusOf({ name, problem }: ComponentHealth): ComponentStatus {
  const condition =
    problem === undefined ? { type: 'Healthy', status: 'True', message: 'ok' } : { type: 'Healthy', status: 'False', message: problem, error: problem }
  return { kind: 'ComponentStatus', apiVersion: 'v1', metadata: { name }, conditions: [condition] } as ComponentStatus
}
