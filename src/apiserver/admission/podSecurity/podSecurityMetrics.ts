/** Metrics of PodSecurity (L3). Upstream: k8s.io/pod-security-admission/metrics/metrics.go (v0.36). */
import { type LevelVersion, type Mode, versionText } from '#api/podSecurity/policy'
import type { Metrics } from '#base/metrics'
import type { AdmissionAttributes } from '../admission.ts'

export interface PodSecurityMetrics {
  evaluated(allowed: boolean, policy: LevelVersion, mode: Mode, attributes: AdmissionAttributes): void
  exempted(attributes: AdmissionAttributes): void
  failed(fatal: boolean, attributes: AdmissionAttributes): void
}

/** This server's minor version: policies of later ones share a label. */
const ownVersion = 36

export function createPodSecurityMetrics(metrics: Metrics): PodSecurityMetrics {
  const requestLabels = ['request_operation', 'resource', 'subresource']
  const evaluations = metrics.counter({
    name: 'pod_security_evaluations_total',
    help: 'How often pods were held against a level, by what came of it.',
    labels: ['decision', 'policy_level', 'policy_version', 'mode', ...requestLabels],
  })
  const exemptions = metrics.counter({
    name: 'pod_security_exemptions_total',
    help: 'How many requests were exempt.',
    labels: requestLabels,
  })
  const errors = metrics.counter({
    name: 'pod_security_errors_total',
    help: 'How often a level could not be told; some such pods are held against restricted:latest.',
    labels: ['fatal', ...requestLabels],
  })
  // The series of nearly all pods of a cluster.
  const plain = { decision: 'allow', policy_level: 'privileged', policy_version: 'latest', mode: 'enforce', resource: 'pod', subresource: '' }
  const privilegedPods = {
    CREATE: evaluations.series({ ...plain, request_operation: 'create' }),
    UPDATE: evaluations.series({ ...plain, request_operation: 'update' }),
  }
  return {
    evaluated(allowed, policy, mode, attributes) {
      const { operation, resource, subresource } = attributes
      if (allowed && policy.level === 'privileged' && mode === 'enforce' && subresource === '' && resource.resource === 'pods') {
        if (operation === 'CREATE' || operation === 'UPDATE') return privilegedPods[operation].inc()
      }
      evaluations.inc({
        decision: allowed ? 'allow' : 'deny',
        policy_level: policy.level,
        policy_version: versionLabel(policy),
        mode,
        ...requestOf(attributes),
      })
    },
    exempted: (attributes) => exemptions.inc(requestOf(attributes)),
    failed: (fatal, attributes) => errors.inc({ fatal: String(fatal), ...requestOf(attributes) }),
  }
}

function versionLabel({ level, version }: LevelVersion): string {
  if (level === 'privileged' || version === 'latest') return 'latest'
  return version > ownVersion ? 'future' : versionText(version)
}

function requestOf({ operation, resource, subresource }: AdmissionAttributes) {
  const known = resource.group === '' && (resource.resource === 'pods' || resource.resource === 'namespaces')
  return { request_operation: operation.toLowerCase(), resource: known ? resource.resource.slice(0, -1) : 'controller', subresource }
}
