-- The video's room is there before anybody joins, so that nobody is its owner: in the livechat plugin a module asks
-- PeerTube who may be, which is no anonymous viewer.
local muc = module:depends "muc";
local jid = module:get_option_string("evening_room") .. "@" .. module.host;

module:hook_global("server-started", function ()
	if not muc.get_room_from_jid(jid) then
		local room = muc.create_room(jid);
		room:set_name("An evening");
		room:set_persistent(true);
		room:save(true);
	end
end);
