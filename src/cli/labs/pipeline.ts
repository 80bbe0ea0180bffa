/** The lab on the pipeline of the API server (L4). */
import { configMaps, limitRanges, pods, resourceQuotas, validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { aPod } from './workloads.ts'

export const pipeline: Lab = {
  number: 7,
  title: 'The pipeline of the API server',
  about: 'A write passes authentication, authorization, mutating admission, validation and validating admission before it is stored; each can refuse it.',
  start: (look) => look.create(resourceQuotas, { metadata: { name: 'small' }, spec: { hard: { pods: '0' } } }),
  cleanUp: async (look) => {
    await look.remove(validatingAdmissionPolicyBindings, look.namespace)
    await look.remove(validatingAdmissionPolicies, look.namespace)
  },
  tasks: [
    {
      text: 'Try to run a pod in the namespace lab-07. Which admission plugin refuses it? Answer with the annotation "refused-by". `skiff explain last` names it.',
      hint: 'kubectl annotate namespace lab-07 --overwrite refused-by=ResourceQuota',
      check: (look) => look.answers('refused-by', 'ResourceQuota'),
    },
    {
      text: 'Let the quota "small" admit one pod, and no more.',
      hint: `kubectl patch resourcequota small -n lab-07 --type=merge -p '{"spec":{"hard":{"pods":"1"}}}'`,
      check: async (look) => {
        const hard = (await look.get(resourceQuotas, 'small'))?.spec?.hard?.pods
        const refusal = hard === '1' ? await look.refusal(pods, aPod('try')) : `the quota has pods: ${hard}`
        const isUsed = (await look.list(pods)).length > 0
        return passes(hard === '1' && (refusal === undefined || isUsed), refusal ?? 'a first pod is admitted')
      },
    },
    {
      text: 'Let mutating admission give each container in lab-07 that names no memory limit one of 64Mi: a LimitRange does that.',
      hint: `echo '{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"defaults"},"spec":{"limits":[{"type":"Container","default":{"memory":"64Mi"}}]}}' | kubectl apply -n lab-07 -f -`,
      check: async (look) => {
        const limits = (await look.list(limitRanges)).flatMap(({ spec }) => spec?.limits ?? []).filter(({ type }) => type === 'Container')
        const memory = limits.map((limit) => limit.default?.memory).find((value) => value !== undefined)
        return passes(memory === '64Mi', memory === undefined ? 'no LimitRange of lab-07 has a default for memory' : `the default is ${memory}`)
      },
    },
    {
      text: 'Write a ValidatingAdmissionPolicy with a binding: in the namespace lab-07 a ConfigMap without the label "team" is refused.',
      hint: `echo '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"lab-07"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},"validations":[{"expression":"has(object.metadata.labels) && \\"team\\" in object.metadata.labels","message":"name the team"}]}}' | kubectl apply -f -
echo '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"lab-07"},"spec":{"policyName":"lab-07","validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"lab-07"}}}}}' | kubectl apply -f -`,
      check: async (look) => {
        const without = await look.refusal(configMaps, { metadata: { name: 'without' } })
        const labelled = await look.refusal(configMaps, { metadata: { name: 'labelled', labels: { team: 'a' } } })
        return passes(without !== undefined && labelled === undefined, labelled ?? without ?? 'a ConfigMap without the label is admitted')
      },
    },
  ],
}
