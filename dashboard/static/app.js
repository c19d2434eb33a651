// What the page does by itself: it counts down, and shows what is new. All of it
// works without, by loading the page again.
"use strict";

const body = document.body;
let has = body.dataset.watch; // what the page is up to date with
const retitle = document.title.replace(/^\(\d+\) /, "");

function span(seconds) {
  if (seconds >= 172800) return Math.floor(seconds / 86400) + "d " + Math.floor((seconds % 86400) / 3600) + "h";
  if (seconds >= 3600) return Math.floor(seconds / 3600) + "h " + Math.floor((seconds % 3600) / 60) + "m";
  if (seconds >= 60) return Math.floor(seconds / 60) + "m";
  return Math.floor(seconds) + "s";
}

function count() {
  for (const e of document.querySelectorAll("[data-at]")) {
    const left = (Date.parse(e.dataset.at) - Date.now()) / 1000;
    const text = left > 0 ? "in " + span(left) : span(-left) + " ago";
    if (e.textContent !== text) e.textContent = text;
  }
}
count();
setInterval(count, 1000);

function say(text) {
  document.getElementById("live").textContent = text;
}

// busy tells whether somebody is at work in a part of the page: it is not taken
// from under their hands.
function busy(part) {
  if (part.contains(document.activeElement) && document.activeElement !== document.body) return true;
  return [...part.querySelectorAll("form[data-keep] input:not([type=hidden])")].some((i) => i.value !== "");
}

async function refresh(topics) {
  const parts = [...document.querySelectorAll("[data-live]")].filter((p) => topics.some((t) => p.dataset.live.split(" ").includes(t)));
  if (!parts.length && !topics.includes("freezes")) return;
  if (parts.some(busy)) {
    document.getElementById("news").hidden = false;
    return;
  }
  const answer = await fetch(location.href, { headers: { "X-Canopy-Watching": "1" }, credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return location.reload();
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = [...fresh.querySelectorAll("[data-live]")];
  document.querySelectorAll("[data-live]").forEach((part, i) => {
    if (now[i] && !busy(part)) part.replaceWith(document.adoptNode(now[i]));
  });
  const banners = fresh.getElementById("banners");
  if (banners) document.getElementById("banners").replaceWith(document.adoptNode(banners));
  count();
}

function watch() {
  const stream = new EventSource("/events?since=" + encodeURIComponent(has));
  stream.onmessage = (e) => {
    has = e.lastEventId;
    const news = JSON.parse(e.data);
    const badge = document.getElementById("pending");
    if (badge) {
      badge.firstChild.nodeValue = news.pending;
      badge.hidden = news.pending === 0;
    }
    document.title = (news.pending ? "(" + news.pending + ") " : "") + retitle;
    if (news.topics.includes("approvals")) say(news.pending + " waiting for a person.");
    refresh(news.topics).catch(() => { document.getElementById("news").hidden = false; });
  };
  stream.addEventListener("over", () => { stream.close(); location.reload(); });
  stream.onopen = () => body.removeAttribute("data-lost");
  stream.onerror = () => {
    body.setAttribute("data-lost", "");
    if (stream.readyState === EventSource.CLOSED) say("This page no longer hears what is new: load it again.");
  };
  addEventListener("pagehide", () => stream.close());
}
if (has) watch();
