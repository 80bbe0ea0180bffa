/**
 * Authorization at a component's own port (L5): the API server decides, except for paths that are open to all.
 * Upstream: apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions (v1.36).
 */
import { duration, list, text } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export interface DelegatedAuthorizationSettings {
  /** Empty: no API server is asked, and paths that are not open to all are forbidden. */
  readonly kubeconfig: string
  /** With * at the end: all that begin so. */
  readonly alwaysAllowPaths: readonly string[]
  readonly authorizedTtlMs: number
  readonly unauthorizedTtlMs: number
}

export const delegatedAuthorization = optionGroup({
  name: 'Authorization',
  flags: {
    'authorization-always-allow-paths': list('Paths that need no authorization, with * at the end for a prefix; flags that name some replace these', [
      '/healthz',
      '/readyz',
      '/livez',
    ]),
    'authorization-kubeconfig': text('A kubeconfig with the right to create subjectaccessreviews; empty: all but the open paths is forbidden'),
    'authorization-webhook-cache-authorized-ttl': duration('How long a yes holds', 10_000),
    'authorization-webhook-cache-unauthorized-ttl': duration('How long a no holds', 10_000),
  },
  settings(values): DelegatedAuthorizationSettings {
    return {
      kubeconfig: values['authorization-kubeconfig'],
      alwaysAllowPaths: values['authorization-always-allow-paths'],
      authorizedTtlMs: values['authorization-webhook-cache-authorized-ttl'],
      unauthorizedTtlMs: values['authorization-webhook-cache-unauthorized-ttl'],
    }
  },
})
