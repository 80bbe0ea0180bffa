/** The lab on authentication and authorization (L4). */
import { serviceAccounts } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'

export const access: Lab = {
  number: 12,
  title: 'Authentication and authorization',
  about: 'A token says who asks; a binding gives a role to that name, in one namespace or in all of them.',
  start: (look) => look.create(serviceAccounts, { metadata: { name: 'robot' } }),
  tasks: [
    {
      text: 'As which user does a token of the service account "robot" authenticate? Answer with the annotation "user" of the namespace lab-12. `kubectl create token robot -n lab-12` makes a token, `kubectl auth whoami --token=…` asks the server.',
      hint: `kubectl annotate namespace lab-12 --overwrite user=system:serviceaccount:lab-12:robot`,
      check: (look) => look.answers('user', `system:serviceaccount:${look.namespace}:robot`),
    },
    {
      text: 'Let "robot" list the pods of lab-12, and nothing else: no secrets, no deletions, no other namespace.',
      hint: `kubectl create role pod-lister -n lab-12 --verb=list --resource=pods
kubectl create rolebinding robot-lists -n lab-12 --role=pod-lister --serviceaccount=lab-12:robot`,
      check: async (look) => {
        const { namespace } = look
        const user = `system:serviceaccount:${namespace}:robot`
        const asked = [
          { verb: 'list', resource: 'pods', namespace },
          { verb: 'delete', resource: 'pods', namespace },
          { verb: 'get', resource: 'secrets', namespace },
          { verb: 'list', resource: 'pods', namespace: 'default' },
        ]
        const may = await Promise.all(asked.map((attributes) => look.allows(user, attributes)))
        const words = asked.map(({ verb, resource, namespace: where }, at) => `${verb} ${resource} in ${where}: ${may[at] ? 'yes' : 'no'}`)
        return passes(may.join() === 'true,false,false,false', words.join(', '))
      },
    },
  ],
}
