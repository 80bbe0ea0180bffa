/** The lab on the life of kubectl apply (L4). */
import { deployments, replicaSets } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'

const manager = 'learner'

export const applying: Lab = {
  number: 2,
  title: 'The life of kubectl apply',
  about: 'The server remembers who wrote which field, and each controller adds the next object: a Deployment a ReplicaSet, a ReplicaSet pods.',
  tasks: [
    {
      text: 'Apply a Deployment "web" with two replicas by server-side apply, as the field manager "learner".',
      hint: `kubectl create deployment web -n lab-02 --image=lab.skiff.dev/app:1 --replicas=2 --dry-run=client -o yaml > /tmp/skiff-lab-02.yaml
kubectl apply --server-side --field-manager=learner -f /tmp/skiff-lab-02.yaml
rm /tmp/skiff-lab-02.yaml`,
      check: async (look) => {
        const deployment = await look.get(deployments, 'web')
        if (!deployment) return passes(false, 'there is no Deployment web')
        const managers = (deployment.metadata.managedFields ?? []).map(({ manager, operation }) => `${manager} (${operation})`)
        return passes(managers.includes(`${manager} (Apply)`) && deployment.spec.replicas === 2, `its fields belong to ${managers.join(', ')}`)
      },
    },
    {
      text: 'Which ReplicaSet owns the pods of "web"? Answer with the annotation "owner" of the namespace lab-02.',
      hint: `kubectl rollout status deployment web -n lab-02 --timeout=60s
kubectl annotate namespace lab-02 --overwrite owner=$(kubectl get pods -n lab-02 -l app=web -o jsonpath='{.items[0].metadata.ownerReferences[0].name}')`,
      check: async (look) => {
        // After a rollout the pods belong to another one.
        const names = (await look.list(replicaSets, 'app=web')).map(({ metadata }) => metadata.name ?? '')
        const { owner = '' } = await look.notes()
        return look.answers('owner', names.includes(owner) ? owner : names[0])
      },
    },
    {
      text: 'Change the image of "web" to lab.skiff.dev/app:2. The Deployment controller makes a second ReplicaSet and keeps the first one for a rollback.',
      hint: `kubectl set image deployment/web -n lab-02 app=lab.skiff.dev/app:2
kubectl rollout status deployment web -n lab-02 --timeout=60s`,
      check: async (look) => {
        const sets = await look.list(replicaSets, 'app=web')
        const images = sets.map(({ spec }) => `${spec?.template?.spec?.containers[0]?.image} (${spec?.replicas ?? 1} replicas)`)
        const deployment = await look.get(deployments, 'web')
        const isDone = deployment?.status.updatedReplicas === 2 && deployment.spec.template.spec?.containers[0]?.image === 'lab.skiff.dev/app:2'
        return passes(isDone && sets.length >= 2, `ReplicaSets: ${images.join(', ') || 'none'}`)
      },
    },
  ],
}
