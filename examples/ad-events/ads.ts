// The advertisements of the workload, the same wherever this module is loaded: in the generator and in the app.

import { randomOf } from '../random.ts';

export const CAMPAIGNS = 100;
export const ADS_PER_CAMPAIGN = 10;

export interface Ad {
  readonly id: string;
  readonly campaign: string;
}

export const ADS: readonly Ad[] = makeAds();

const campaignById = new Map(ADS.map(({ id, campaign }) => [id, campaign]));

export function campaignOf(adId: string): string | undefined {
  return campaignById.get(adId);
}

function makeAds(): Ad[] {
  const random = randomOf(1);
  return Array.from({ length: CAMPAIGNS * ADS_PER_CAMPAIGN }, (_, index) => ({
    id: uuidOf(random),
    campaign: `campaign-${String(Math.floor(index / ADS_PER_CAMPAIGN)).padStart(2, '0')}`,
  }));
}

export function uuidOf(random: () => number): string {
  const hex = Array.from({ length: 4 }, () => random().toString(16).padStart(8, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}
