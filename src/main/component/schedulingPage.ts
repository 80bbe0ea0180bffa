/**
 * `/debug/scheduling?pod=namespace/name` (L5): why a pod is where it is, as JSON. Whoever may read that path may ask; it tells of all nodes and of other
 * pods' names. Served by a local cluster's API server, and by the scheduler's own port.
 */

import { StatusError } from '#api/machinery/status'
import type { Answer } from '#apiserver/answer'
import type { ServerRequest } from '#apiserver/request'
import { type Explainer, parsePodName } from '#scheduler/explain/explainer'

export const schedulingPath = '/debug/scheduling'

/** Undefined for other paths. */
export function schedulingPage(explainer: Explainer): (request: Pick<ServerRequest, 'path' | 'query'>) => Answer | undefined {
  return ({ path, query }) => {
    if (path !== schedulingPath) return undefined
    const asked = query.get('pod')
    if (!asked) return failure(new StatusError('BadRequest', 'name a pod: ?pod=namespace/name', { code: 400 }))
    const { namespace, name } = parsePodName(asked)
    const found = explainer.explain(namespace, name)
    if (found === undefined) return failure(new StatusError('ServiceUnavailable', 'the scheduler is not running here at the moment', { code: 503 }))
    if (found === 'unknown')
      return failure(
        new StatusError(
          'NotFound',
          `pod "${namespace}/${name}" is not known to the scheduler: it does not exist, it has ended, or it names another scheduler`,
          { code: 404 },
        ),
      )
    return { type: 'value', status: 200, value: found, encoding: 'pretty' }
  }
}

function failure(error: StatusError): Answer {
  return { type: 'value', status: error.code, value: error.toStatus(), encoding: 'pretty' }
}
