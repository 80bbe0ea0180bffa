/**
 * `/debug/scheduling?pod=namespace/name` (L5): why a pod is where it is, as JSON; `?spec=POD`: where a pod would fit that does not exist. Reading needs the
 * right to `get` that path: the answer names all nodes and other pods. Served by a local cluster's API server, and by the scheduler's own port.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { StatusError } from '#api/machinery/status'
import type { Answer } from '#apiserver/core/answer'
import type { ServerRequest } from '#apiserver/core/request'
import { deepFreeze } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { type Explainer, parsePodName } from '#scheduler/explain/explainer'

export const schedulingPath = '/debug/scheduling'

export function schedulingPage(explainer: Explainer): { readonly prefix: string; handle(request: Pick<ServerRequest, 'path' | 'query'>): Answer | undefined } {
  const handle = ({ path, query }: Pick<ServerRequest, 'path' | 'query'>): Answer | undefined => {
    if (path !== schedulingPath) return undefined
    const spec = query.get('spec')
    if (spec) return considered(explainer, spec)
    const asked = query.get('pod')
    if (!asked) return failure(new StatusError('BadRequest', 'name a pod: ?pod=namespace/name', { code: 400 }))
    const { namespace, name } = parsePodName(asked)
    const found = explainer.explain(namespace, name)
    if (found === undefined) return notRunning()
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
  return { prefix: schedulingPath, handle }
}

function notRunning(): Answer {
  return failure(new StatusError('ServiceUnavailable', 'the scheduler is not running here at the moment', { code: 503 }))
}

function considered(explainer: Explainer, text: string): Answer {
  try {
    const pod = JSON.parse(text) as Pod
    if (!Array.isArray(pod.spec?.containers) || typeof pod.metadata !== 'object') throw new Error('expected metadata and spec.containers')
    const found = explainer.consider(deepFreeze(pod))
    return found ? { type: 'value', status: 200, value: found, encoding: 'pretty' } : notRunning()
  } catch (error) {
    return failure(new StatusError('BadRequest', `spec is no pod: ${messageOf(error)}`, { code: 400 }))
  }
}

function failure(error: StatusError): Answer {
  return { type: 'value', status: error.code, value: error.toStatus(), encoding: 'pretty' }
}
