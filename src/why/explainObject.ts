/**
 * Why an object waits (L2): the table of the kinds that have a question of their own. Every other kind is explained by its conditions, and an object that is
 * being deleted by what keeps it. The command line, the page and tests ask here.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { type Answer, type Cause, type Explanation, objectName } from './answer.ts'
import { explainApiService } from './apiService.ts'
import { explainCertificate } from './certificateSigningRequest.ts'
import { explainByConditions } from './conditions.ts'
import { explainCronJob } from './cronJob.ts'
import { explainDefinition } from './customResourceDefinition.ts'
import { explainDaemonSet } from './daemonSet.ts'
import { deletionCauses } from './deletion.ts'
import { explainDeployment } from './deployment.ts'
import { type ExplainedKind, explainedKinds } from './explainedKinds.ts'
import { explainGateway, explainRoute } from './gateway.ts'
import { explainIngress } from './ingress.ts'
import { explainJob } from './job.ts'
import { explainNode } from './node.ts'
import { explainVolume } from './persistentVolume.ts'
import { explainClaim } from './persistentVolumeClaim.ts'
import { explainPod } from './pod.ts'
import { explainBudget } from './podDisruptionBudget.ts'
import type { ObjectReader } from './reader.ts'
import { explainReplicaSet, explainReplicationController } from './replicaSet.ts'
import { explainService } from './service.ts'
import { explainStatefulSet } from './statefulSet.ts'
import { View } from './view.ts'
import { explainWebhooks } from './webhookConfiguration.ts'

/** It is about objects of its own kind, and reads what it needs through the view, and nothing else. */
type Question = (object: never, view: View) => Promise<Explanation>

const questions: Readonly<Record<ExplainedKind, Question>> = {
  'apiservices.apiregistration.k8s.io': explainApiService,
  'certificatesigningrequests.certificates.k8s.io': explainCertificate,
  'cronjobs.batch': explainCronJob,
  'customresourcedefinitions.apiextensions.k8s.io': explainDefinition,
  'daemonsets.apps': explainDaemonSet,
  'deployments.apps': explainDeployment,
  'gateways.gateway.networking.k8s.io': explainGateway,
  'grpcroutes.gateway.networking.k8s.io': explainRoute,
  'httproutes.gateway.networking.k8s.io': explainRoute,
  'ingresses.networking.k8s.io': explainIngress,
  'jobs.batch': explainJob,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': explainWebhooks,
  nodes: explainNode,
  persistentvolumeclaims: explainClaim,
  persistentvolumes: explainVolume,
  'poddisruptionbudgets.policy': explainBudget,
  pods: explainPod,
  'replicasets.apps': explainReplicaSet,
  replicationcontrollers: explainReplicationController,
  services: explainService,
  'statefulsets.apps': explainStatefulSet,
  'tlsroutes.gateway.networking.k8s.io': explainRoute,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': explainWebhooks,
}

/** The resources with a question of their own. */
export function explainedResources(): readonly string[] {
  return explainedKinds.map((name) => name.split('.', 1)[0] ?? name)
}

export interface ResourceName {
  readonly group: string
  readonly resource: string
}

export async function explainObject({ group, resource }: ResourceName, object: Frozen<KubeObject>, reader: ObjectReader): Promise<Answer> {
  const view = new View(reader)
  const question: Question = ownValue<Question>(questions, group === '' ? resource : `${resource}.${group}`) ?? explainByConditions
  const { deletionTimestamp } = object.metadata
  const found =
    deletionTimestamp === undefined
      ? await question(object as never, view)
      : { state: `it is being deleted since ${deletionTimestamp}`, causes: await deletionCauses(object, view) }
  const { notRead } = view
  const { state, causes, isSettled = causes.length === 0 && notRead.length === 0 } = found
  return { object: objectName(object), state, causes: causes.map(shown), isSettled, notRead }
}

/** Without what the questions keep for themselves. */
function shown({ text, evidence, next }: Cause): Cause {
  return { text, evidence, ...(next === undefined ? {} : { next }) }
}
