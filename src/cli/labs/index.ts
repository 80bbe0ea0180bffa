/** The labs, by number (L4). */
import { access } from './access.ts'
import { applying } from './applying.ts'
import { architecture } from './architecture.ts'
import { clients } from './clients.ts'
import { controllers } from './controllers.ts'
import { framework } from './framework.ts'
import { informers } from './informers.ts'
import { kubelet } from './kubelet.ts'
import type { Lab } from './lab.ts'
import { networking } from './networking.ts'
import { operators } from './operators.ts'
import { pipeline } from './pipeline.ts'
import { scheduling } from './scheduling.ts'
import { storage } from './storage.ts'
import { store } from './store.ts'

export const labs: readonly Lab[] = [
  architecture,
  applying,
  scheduling,
  controllers,
  framework,
  store,
  pipeline,
  operators,
  networking,
  kubelet,
  storage,
  access,
  informers,
  clients,
]
